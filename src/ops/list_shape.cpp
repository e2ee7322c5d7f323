// Operators that compute shapes or give the same elements other dimensions.
#include "ops/constant_of_shape.hpp"
#include "ops/declare_impl.hpp"
#include "ops/expand.hpp"
#include "ops/eye_like.hpp"
#include "ops/flatten.hpp"
#include "ops/lists.hpp"
#include "ops/range.hpp"
#include "ops/reshape.hpp"
#include "ops/shape.hpp"
#include "ops/size.hpp"
#include "ops/squeeze.hpp"
#include "ops/transpose.hpp"
#include "ops/unsqueeze.hpp"

namespace opfuse {

void register_shape(OpRegistry& registry) {
  registry.add(declare<ShapeOf>());
  registry.add(declare<SizeOf>());
  registry.add(declare<Reshape>());
  registry.add(declare<Flatten>());
  registry.add(declare<Squeeze>());
  registry.add(declare<Unsqueeze>());
  registry.add(declare<Expand>());
  registry.add(declare<Transpose>());
  registry.add(declare<Range>());
  registry.add(declare<ConstantOfShape>());
  registry.add(declare<EyeLike>());
}

}  // namespace opfuse
