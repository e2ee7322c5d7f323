#include "bound_context.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>

namespace nb = nanobind;

namespace opfuse::python {

std::string names_of(const std::vector<TensorInfo>& tensors) {
  std::string names;
  for (const TensorInfo& tensor : tensors) names += (names.empty() ? "" : ", ") + tensor.name;
  return names;
}

/// An int, or an object of torch or cupy that has one; none: the default stream.
int64_t stream_of(nb::handle stream) {
  if (stream.is_none()) return kDefaultStream;
  for (const char* attribute : {"cuda_stream", "ptr"})
    if (nb::hasattr(stream, attribute)) return std::max(nb::cast<int64_t>(stream.attr(attribute)), kDefaultStream);
  int64_t number = 0;
  if (!nb::try_cast(stream, number) || number < 0)
    throw bad_binding("stream is neither a handle nor an object that has one", "torch.cuda.current_stream()");
  return std::max(number, kDefaultStream);
}

void BoundContext::bind(const std::string& name, nb::handle object, int64_t stream) {
  const bool on_device = context_.device() != kHostMemory && device_of(object) != kHostMemory;
  const HeldArray array =
      on_device ? device_array_in_place(name, object, stream) : array_in_place(name, object, is_output(name));
  with_context([&](Context& context) { context.bind(name, array.view); });
  bound_.insert_or_assign(name, array);
  own_.erase(name);
}

void BoundContext::run(nb::handle stream) {
  for (const TensorInfo& output : exe_.outputs()) give_memory(output);
  if (stream.is_none() && !resident()) {
    with_context([](Context& context) { context.run(); });
    return take_found();
  }
  const int64_t handle = stream_of(stream);
  if (!stream.is_none() && context_.device() != kHostMemory) check_resident();
  const bool wait = stream.is_none();
  with_context([=](Context& context) {
    context.run_on(handle == kDefaultStream ? nullptr : reinterpret_cast<void*>(handle));
    if (wait) context.wait();
  });
}

nb::object BoundContext::output(const std::string& name) const {
  const auto at = bound_.find(name);
  if (is_output(name) && at != bound_.end()) return at->second.object;
  throw bad_binding(
      is_output(name) ? "output '" + name + "' has no array before run()" : "the model has no output '" + name + "'",
      "outputs: " + names_of(exe_.outputs()));
}

bool BoundContext::is_output(const std::string& name) const {
  for (const TensorInfo& output : exe_.outputs())
    if (output.name == name) return true;
  return false;
}

bool BoundContext::resident() const {
  for (const auto& [name, array] : bound_)
    if (array.view.device != kHostMemory) return true;
  return false;
}

/// A run that is not waited for would read and write arrays of the host later, when they may be gone.
void BoundContext::check_resident() const {
  for (const auto& [name, array] : bound_)
    if (array.view.device == kHostMemory)
      throw bad_binding("the array for '" + name + "' lies in the host's memory, and the run is given to a stream",
                        "exe.to_device(array), tensor.cuda(), or run without stream");
}

/// An array for an output that the caller did not bind: the last run's, unless the shape is another now. It lies
/// where inputs do, and is torch's where they are.
void BoundContext::give_memory(const TensorInfo& output) {
  const auto at = bound_.find(output.name);
  if (found_.contains(output.name) || (at != bound_.end() && !own_.contains(output.name))) return;
  const auto known = with_context([&](Context& context) { return context.known_output_shape(output.name); });
  if (!known) {
    found_.insert(output.name);
    return;
  }
  const std::vector<int64_t>& shape = *known;
  if (at != bound_.end() && at->second.view.shape == shape) return;
  const HeldArray array = context_.device() != kHostMemory && (device_results_ || resident())
                              ? new_device_array(output, shape)
                              : new_array(output.name, output.dtype, shape);
  with_context([&](Context& context) { context.bind(output.name, array.view); });
  bound_.insert_or_assign(output.name, array);
  own_[output.name] = true;
}

/// Outputs whose sizes the run found: copies of the context's arrays, since the next run's may be of other sizes.
void BoundContext::take_found() {
  for (const TensorInfo& output : exe_.outputs()) {
    if (!found_.contains(output.name) || (bound_.contains(output.name) && !own_.contains(output.name))) continue;
    const ArrayView view = with_context([&](Context& context) { return context.output(output.name); });
    const HeldArray array = new_array(output.name, output.dtype, view.shape);
    const auto bytes = nb::cast<size_t>(array.object.attr("nbytes"));
    if (bytes > 0) std::memcpy(array.view.data, view.data, bytes);
    bound_.insert_or_assign(output.name, array);
    own_[output.name] = true;
  }
}

HeldArray BoundContext::new_device_array(const TensorInfo& output, const std::vector<int64_t>& shape) {
  nb::object made;
  for (const auto& [name, array] : bound_)
    if (array.view.device != kHostMemory && !made)
      made = nb::module_::import_("opfuse._device")
                 .attr("like")(array.object, nb::cast(shape), numpy_name(output.dtype), context_.device());
  if (!made || made.is_none()) made = nb::cast(DeviceArray(exe_, output.dtype, shape, context_.device()));
  return device_array_in_place(output.name, made, kNobodyWaits);
}

}  // namespace opfuse::python
