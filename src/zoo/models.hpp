// The models' builders, one file per family; zoo.cpp lists them.
#pragma once

#include "zoo/zoo.hpp"

namespace opfuse {

Graph build_resnet18(const ZooOptions& options);  // resnet.cpp
Graph build_resnet34(const ZooOptions& options);
Graph build_resnet50(const ZooOptions& options);
Graph build_resnet101(const ZooOptions& options);
Graph build_resnet152(const ZooOptions& options);
Graph build_mobilenet_v2(const ZooOptions& options);        // mobilenet_v2.cpp
Graph build_mobilenet_v3_large(const ZooOptions& options);  // mobilenet_v3.cpp
Graph build_efficientnet_b0(const ZooOptions& options);     // efficientnet.cpp
Graph build_vgg16(const ZooOptions& options);               // vgg.cpp
Graph build_convnext_tiny(const ZooOptions& options);       // convnext.cpp
Graph build_convnext_small(const ZooOptions& options);
Graph build_convnext_base(const ZooOptions& options);
Graph build_convnext_large(const ZooOptions& options);
Graph build_vit_b_16(const ZooOptions& options);   // vit.cpp
Graph build_swin_t(const ZooOptions& options);     // swin.cpp
Graph build_bert_base(const ZooOptions& options);  // bert.cpp
Graph build_alexnet(const ZooOptions& options);    // alexnet.cpp
Graph build_unet(const ZooOptions& options);       // unet.cpp

}  // namespace opfuse
