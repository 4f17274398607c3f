#include "quant/export/onnx/values.hpp"

#include <algorithm>

namespace quantrain::onnx_export {
namespace {

/// Whether the elements lie in an order that differs from the program's.
bool is_turned(const Form& form) {
  return form.channels_first && form.dims[0] > 1 && form.dims[1] * form.dims[2] > 1;
}

bool same_order(const Form& a, const Form& b) {
  if (is_turned(a) != is_turned(b)) return false;
  return !is_turned(a) || a.dims[0] == b.dims[0];
}

}  // namespace

Form form_of(const Shape& shape) { return {.dims = {shape.begin(), shape.end()}}; }

std::string reshape(onnx::GraphBuilder& graph,
                    const std::string& x,
                    const std::vector<int64_t>& dims,
                    int64_t samples) {
  std::vector<int64_t> shape{samples};
  shape.insert(shape.end(), dims.begin(), dims.end());
  return graph.node("Reshape", {x, graph.constant<int64_t>({std::ssize(shape)}, shape, "shape")});
}

const Values::Held* Values::find(int id, const Form& form) const {
  const std::vector<Held>& held = held_[static_cast<size_t>(id)];
  const auto found =
      std::find_if(held.begin(), held.end(), [&](const Held& h) { return h.form == form; });
  return found == held.end() ? nullptr : &*found;
}

std::string Values::add(int id, const Form& form, std::string name) {
  held_[static_cast<size_t>(id)].push_back({form, name});
  return name;
}

void Values::set(int id, Form form, std::string name) { add(id, form, std::move(name)); }

std::string Values::get(int id, const Form& form) {
  if (const Held* const held = find(id, form)) return held->name;
  const std::vector<Held>& all = held_[static_cast<size_t>(id)];
  for (const Held& held : all) {
    if (!same_order(held.form, form)) continue;
    // An image in the program's order and in that of the file have other dims, but the same rank.
    if (held.form.dims == form.dims) return add(id, form, held.name);
    return add(id, form, reshape(graph_, held.name, form.dims));
  }
  using Order = std::vector<int64_t>;
  if (is_turned(form)) {
    const Order& d = form.dims;
    const std::string x = get(id, {.dims = {d[1], d[2], d[0]}});
    return add(id, form, graph_.node("Transpose", {x}, {{"perm", Order{0, 3, 1, 2}}}));
  }
  const Held from = all.front();  // turned, as none has the program's order
  const Order& d = from.form.dims;
  add(id,
      {.dims = {d[1], d[2], d[0]}},
      graph_.node("Transpose", {from.name}, {{"perm", Order{0, 2, 3, 1}}}));
  return get(id, form);
}

}  // namespace quantrain::onnx_export
