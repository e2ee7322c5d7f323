// The operators the IR itself provides: nodes with a body, and nodes kept unchanged.
#include "base/fail.hpp"
#include "ir/graph.hpp"

namespace opfuse {

namespace {

OpInfo body_op(std::string name, std::string doc) {
  OpInfo info;
  info.name = std::move(name);
  info.kind = OpKind::composite;
  info.inputs = {{"inputs", true, true}};
  info.outputs = {{"outputs", true, true}};
  info.doc = std::move(doc);
  info.has_body = true;
  return info;
}

OpInfo make_opaque() {
  OpInfo info;
  info.name = "opaque";
  info.kind = OpKind::opaque;
  info.inputs = {{"inputs", true, true}};
  info.outputs = {{"outputs", true, true}};
  info.doc = "An operator kept unchanged and not understood.";
  info.attrs_to_map = [](const void* attrs) {
    AttrMap map;
    OpaqueAttrs::each(*static_cast<const OpaqueAttrs*>(attrs),
                      [&](std::string_view name, const std::string& field) { map.emplace_back(name, field); });
    return map;
  };
  info.attrs_from_map = [](const AttrMap& map) -> std::shared_ptr<const void> {
    auto attrs = std::make_shared<OpaqueAttrs>();
    size_t used = 0;
    OpaqueAttrs::each(*attrs, [&](std::string_view name, std::string& field) {
      const AttrValue* value = find(map, name);
      if (value == nullptr) return;
      const std::string* text = std::get_if<std::string>(value);
      if (text == nullptr) throw fail(E::bad_attribute, "attribute \"{}\" of opaque is a string", name);
      field = *text;
      ++used;
    });
    if (used != map.size()) throw fail(E::bad_attribute, "opaque has the attributes domain, op_type, raw and reason");
    return attrs;
  };
  const OpaqueAttrs defaults;
  info.default_attrs = info.attrs_to_map(&defaults);
  return info;
}

}  // namespace

const OpInfo* fused_op() {
  static const OpInfo info = body_op("fused", "Several nodes that become one kernel; the body holds them.");
  return &info;
}

const OpInfo* composite_op() {
  static const OpInfo info = body_op("composite", "A recomposed operator; the body is the nodes it was found in.");
  return &info;
}

const OpInfo* opaque_op() {
  static const OpInfo info = make_opaque();
  return &info;
}

}  // namespace opfuse
