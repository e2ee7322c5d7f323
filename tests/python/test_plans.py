"""Patterns, plans, explanations."""
import collections

import pytest

import opfuse

GUIDE = {"FusedConvBNReLUMaxPool": 1, "FusedConvBNAddReLU": 16, "FusedConvBNReLU": 32, "FusedConvBN": 5,
         "FusedAdaptiveAvgPool2d": 1}


def test_resnet50_has_the_modules_of_the_guide():
    fused = opfuse.fuse(opfuse.Model.zoo("resnet50"), patterns=opfuse.TENSORRT_FUSION_PATTERNS)
    assert fused.modules() == GUIDE and fused.plan.modules() == GUIDE
    counted = collections.Counter(entry.module for entry in fused.plan if entry.apply)
    assert counted == GUIDE  # with these patterns and no rules, every group is a module


def test_the_list_is_part_of_the_catalogue_in_its_order():
    catalogue = opfuse.pattern_names()
    assert [name for name in catalogue if name in opfuse.TENSORRT_FUSION_PATTERNS] == opfuse.TENSORRT_FUSION_PATTERNS


def test_a_pattern_left_out_is_not_applied(resnet):
    some = [name for name in opfuse.TENSORRT_FUSION_PATTERNS if name != "AdaptiveAvgPool"]
    assert "FusedAdaptiveAvgPool2d" in opfuse.fuse(resnet, patterns=opfuse.TENSORRT_FUSION_PATTERNS).modules()
    assert "FusedAdaptiveAvgPool2d" not in opfuse.fuse(resnet, patterns=some).modules()
    assert opfuse.fuse(resnet, patterns=[]).modules() == {}


def test_a_pattern_that_does_not_exist_is_an_error(resnet):
    with pytest.raises(opfuse.Error) as caught:
        opfuse.fuse(resnet, patterns=["ConvBNRelu"])
    assert caught.value.code == "E0402" and "ConvBNReLU" in caught.value.hint


def test_a_pattern_of_one_s_own_comes_first(conv_file):
    model = opfuse.load(conv_file)
    gate = opfuse.PatternSpec("ConvGate", "conv:conv -> act:sigmoid", where=["conv.in_channels % 16 == 0"],
                              points={"INPUT": "conv"})
    assert opfuse.fuse(model, patterns=[gate, *opfuse.TENSORRT_FUSION_PATTERNS]).modules() == {"FusedConvGate": 1}
    gate.where = ["conv.in_channels % 32 == 0"]
    assert opfuse.fuse(model, patterns=[gate, *opfuse.TENSORRT_FUSION_PATTERNS]).modules() == {"FusedConvBN": 1}
    with pytest.raises(opfuse.Error) as caught:
        opfuse.fuse(model, patterns=[opfuse.PatternSpec("Broken", "conv:conv -> {relu")])
    assert caught.value.code == "E0703"


def test_patterns_come_from_files_too(conv_file, tmp_path):
    file = tmp_path / "my.toml"
    file.write_text('[[pattern]]\nname = "MyGate"\ntopology = "conv:conv -> act:{sigmoid|tanh}"\n')
    model = opfuse.load(conv_file)
    assert opfuse.fuse(model, patterns=[file, "ConvBN"]).modules() == {"FusedMyGate": 1}
    assert opfuse.plan(model, pattern_files=[file]).modules() == {"FusedMyGate": 1}
    assert opfuse.pattern_names([str(file)])[0] == "MyGate"


def test_an_edited_plan_is_what_is_applied(resnet):
    plan = opfuse.plan(resnet)
    before = plan.modules()
    entry = next(e for e in plan if e.apply and e.rule == "ConvBNReLU")
    plan[entry.id].apply = False
    assert not plan.at(entry.id).apply and not entry.apply
    after = opfuse.apply(resnet, plan).modules()
    assert after == plan.modules() == {**before, "FusedConvBNReLU": before["FusedConvBNReLU"] - 1}
    with pytest.raises(opfuse.Error) as caught:
        plan["ConvBNReLU@nowhere"]
    assert caught.value.code == "E0402"


def test_entries_outlive_their_plan(resnet):
    entries = opfuse.plan(resnet).entries
    assert all(e.id and (e.apply or e.reason) for e in entries)


def test_a_plan_goes_through_json(resnet, conv_file):
    plan = opfuse.plan(resnet)
    entry = next(e for e in plan if e.apply)
    entry.apply = False
    again = opfuse.Plan.from_json(plan.json(), resnet)
    assert [e.apply for e in again] == [e.apply for e in plan] and len(again) == len(plan)
    with pytest.raises(opfuse.Error) as caught:
        opfuse.Plan.from_json(plan.json(), opfuse.load(conv_file))
    assert caught.value.code == "E0403"


def test_only_and_skip_select(resnet):
    assert set(opfuse.plan(resnet, only=["ConvBN"]).modules()) == {"FusedConvBN"}
    assert "FusedConvBN" not in opfuse.plan(resnet, skip=["ConvBN"]).modules()


def test_explain_says_why(resnet):
    remarks = opfuse.explain(resnet, node="/layer1/layer1.0/relu/Relu")
    assert remarks[0].kind == "passed" and remarks[0].rule == "ConvBNReLU"
    assert any(r.kind == "missed" and r.code == "op_mismatch" for r in remarks)
    assert str(remarks).startswith("PASSED   ConvBNReLU at /layer1/layer1.0/relu/Relu")
    passed, missed = opfuse.explain(resnet, missed=False), opfuse.explain(resnet, passed=False)
    assert {r.kind for r in passed} == {"passed"} and {r.kind for r in missed} <= {"missed", "analysis"}
    with pytest.raises(opfuse.Error) as caught:
        opfuse.explain(resnet, node="relu_nowhere")
    assert caught.value.code == "E0402"


def test_explain_follows_the_plan_it_is_given(resnet, conv_file):
    plan = opfuse.plan(resnet)
    entry = next(e for e in plan if e.apply and e.rule == "ConvBNReLU")
    entry.apply = False
    [remark] = [r for r in opfuse.explain(resnet, plan, node=entry.anchor) if r.rule == entry.rule]
    assert remark.kind == "missed" and remark.code == "switched_off"
    with pytest.raises(opfuse.Error) as caught:
        opfuse.explain(opfuse.load(conv_file), plan)
    assert caught.value.code == "E0403"
