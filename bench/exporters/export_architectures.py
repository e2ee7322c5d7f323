#!/usr/bin/env python3
"""Exports public architectures with random weights, for bench/models_table.py.

    python3 -m venv venv && venv/bin/pip install torch torchvision timm transformers onnx onnxscript
    venv/bin/python bench/exporters/export_architectures.py --into FOLDER [--dynamo] [NAME ...]

Each is FOLDER/<name>.<library>.onnx; what cannot be exported is <name>.<library>.txt with the reason. What is there is not
made again. NAME selects by a part of the file name. `--dynamo` exports with torch.onnx.export(dynamo=True) instead of
TorchScript at opset 17, and adds `_dynamo` to the library.
"""
import argparse
import pathlib
import traceback
import warnings

TORCHVISION = """alexnet vgg11_bn resnet18 resnet50 resnext50_32x4d wide_resnet50_2 densenet121 squeezenet1_1 googlenet inception_v3 mobilenet_v2
mobilenet_v3_small mobilenet_v3_large shufflenet_v2_x1_0 mnasnet1_0 efficientnet_b0 efficientnet_v2_s regnet_y_400mf regnet_x_800mf convnext_tiny
vit_b_16 swin_t swin_v2_t maxvit_t""".split()
SEGMENTATION = "fcn_resnet50 deeplabv3_mobilenet_v3_large lraspp_mobilenet_v3_large".split()
TIMM = """tf_efficientnetv2_b0 mobilevit_s mobilevitv2_050 mobileone_s0 ghostnet_100 hrnet_w18_small dla34 cspdarknet53 res2net50_26w_4s resnest14d sknasnet_placeholder
gernet_s repvgg_a0 mixer_s16_224 gmlp_s16_224 resmlp_12_224 deit_tiny_patch16_224 cait_xxs24_224 crossvit_tiny_240 pit_ti_224 levit_128s twins_svt_small
pvt_v2_b0 poolformer_s12 edgenext_xx_small efficientformer_l1 convmixer_768_32 coat_tiny xcit_nano_12_p16_224 beit_base_patch16_224 eva02_tiny_patch14_224
fastvit_t8 tiny_vit_5m_224 nfnet_f0 inception_v4 xception41 dpn68 vovnet39a hardcorenas_a tresnet_m lcnet_050 davit_tiny maxvit_tiny_rw_224
convit_tiny visformer_tiny volo_d1_224 mvitv2_tiny focalnet_tiny_srf gcvit_xxtiny repvit_m0_9 efficientvit_b0 efficientvit_m0 mambaout_femto starnet_s1
swiftformer_xs shvit_s1 rdnet_tiny hiera_tiny_224 sequencer2d_s tnt_s_legacy_patch16_224 nest_tiny cs3darknet_s resnetv2_50 skresnet18 seresnet18 ecaresnet26t
legacy_xception bat_resnext26ts halonet26t lambda_resnet26t botnet26t_256 eca_botnext26ts_256 sebotnet33ts_256 regnety_002 rexnet_100 selecsls42
semnasnet_075 mnasnet_small spnasnet_100 fbnetc_100 mixnet_s tinynet_e mobilenetv4_conv_small mobilenetv4_hybrid_medium hgnet_tiny hgnetv2_b0 pvt_v2_b1
ese_vovnet19b_dw vit_relpos_small_patch16_224 vit_srelpos_small_patch16_224 swinv2_cr_tiny_224 swin_s3_tiny_224 samvit_base_patch16_224 naflexvit_base_patch16_gap
coatnet_0_rw_224 coatnext_nano_rw_224 resnet26d haloregnetz_b convnextv2_atto ghostnetv3_100 nf_resnet50 dm_nfnet_f0 res2next50 inception_resnet_v2 nasnetalarge""".split()
TIMM.remove("sknasnet_placeholder")
TRANSFORMERS = {  # library name: (Config and Model prefix, sizes)
    "bert": ("Bert", {}), "distilbert": ("DistilBert", {}), "roberta": ("Roberta", {}), "albert": ("Albert", {}), "electra": ("Electra", {}),
    "mpnet": ("MPNet", {}), "deberta_v2": ("DebertaV2", {"num_hidden_layers": 4}), "funnel": ("Funnel", {}), "longformer": ("Longformer", {"num_hidden_layers": 2}),
    "gpt2": ("GPT2", {}), "gpt_neo": ("GPTNeo", {"num_layers": 4, "attention_types": [[["global", "local"], 2]]}), "bloom": ("Bloom", {"n_layer": 4, "hidden_size": 512, "n_head": 8}),
    "opt": ("OPT", {"num_hidden_layers": 4}), "llama": ("Llama", {"num_hidden_layers": 4, "hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8}),
    "qwen2": ("Qwen2", {"num_hidden_layers": 4, "hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 4}),
    "mistral": ("Mistral", {"num_hidden_layers": 4, "hidden_size": 512, "intermediate_size": 1376, "num_attention_heads": 8, "num_key_value_heads": 4}),
    "squeezebert": ("SqueezeBert", {}), "mobilebert": ("MobileBert", {"num_hidden_layers": 6}), "xlnet": ("XLNet", {"n_layer": 4}),
    "t5_encoder": ("T5", {}), "vit": ("ViT", {}), "deit": ("DeiT", {}), "dinov2": ("Dinov2", {}), "segformer": ("Segformer", {}), "yolos": ("Yolos", {"num_hidden_layers": 4}),
    "poolformer": ("PoolFormer", {}), "wav2vec2": ("Wav2Vec2", {"num_hidden_layers": 4}), "whisper_encoder": ("Whisper", {"encoder_layers": 4}),
}


def image(size=224):
    import torch
    return {"input": torch.randn(1, 3, size, size)}


def torchvision_model(name):
    import torchvision
    options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    return torchvision.models.get_model(name, weights=None, **options), image(299 if name == "inception_v3" else 224)


def segmentation_model(name):
    import torchvision
    return torchvision.models.get_model(name, weights=None, weights_backbone=None), image(256)


def timm_model(name):
    import timm
    model = timm.create_model(name, pretrained=False)
    return model, image(model.default_cfg["input_size"][-1])


def transformers_model(name):
    import torch
    import transformers
    kind, sizes = TRANSFORMERS[name]
    config = getattr(transformers, kind + "Config")(return_dict=False, use_cache=False, **sizes)
    config._attn_implementation = "eager"
    if name == "whisper_encoder":
        return transformers.WhisperModel(config).encoder, {"input_features": torch.randn(1, 80, 3000)}
    if name == "t5_encoder":
        return transformers.T5EncoderModel(config), {"input_ids": torch.randint(0, 99, (1, 128))}
    model = getattr(transformers, kind + "Model")(config)
    if name == "wav2vec2":
        return model, {"input_values": torch.randn(1, 16000)}
    if model.main_input_name == "pixel_values":
        size = getattr(config, "image_size", 224)
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        return model, {"pixel_values": torch.randn(1, 3, height, width)}
    return model, {"input_ids": torch.randint(0, 99, (1, 128))}


def by_name(module, names):
    """TorchScript passes inputs by position; models of transformers take them by name."""
    import torch

    class ByName(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, *values):
            return self.module(**dict(zip(names, values)))
    return ByName()


def export(make, name, path, dynamo):
    import torch
    torch.manual_seed(0)
    module, inputs = make(name)
    if not dynamo and make is transformers_model:
        module = by_name(module, list(inputs))
    module.eval()
    with torch.no_grad():
        options = {"dynamo": True} if dynamo else {"dynamo": False, "opset_version": 17}
        torch.onnx.export(module, (), str(path), kwargs=inputs, input_names=list(inputs), **options) if dynamo else torch.onnx.export(
            module, tuple(inputs.values()), str(path), input_names=list(inputs), **options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--into", type=pathlib.Path, required=True)
    parser.add_argument("--dynamo", action="store_true")
    parser.add_argument("names", nargs="*")
    flags = parser.parse_args()
    flags.into.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")
    lists = [("torchvision", torchvision_model, TORCHVISION), ("torchvision", segmentation_model, SEGMENTATION),
             ("timm", timm_model, TIMM), ("transformers", transformers_model, list(TRANSFORMERS))]
    for library, make, names in lists:
        for name in names:
            stem = f"{name}.{library}" + ("_dynamo" if flags.dynamo else "")
            path, reason = flags.into / f"{stem}.onnx", flags.into / f"{stem}.txt"
            if path.exists() or reason.exists() or (flags.names and not any(part in stem for part in flags.names)):
                continue
            try:
                export(make, name, path, flags.dynamo)
                print(stem, flush=True)
            except Exception as problem:  # noqa: BLE001: every failure of an exporter is a row
                path.unlink(missing_ok=True)
                reason.write_text("".join(traceback.format_exception_only(problem)))
                print(f"{stem}: {type(problem).__name__}", flush=True)


if __name__ == "__main__":
    main()
