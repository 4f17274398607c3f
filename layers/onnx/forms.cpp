#include "layers/onnx/forms.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace quantrain::onnx {
namespace {

/// Whether the elements lie in an order that differs from ours.
bool is_turned(const Form& form) {
  return form.channels_first && form.dims[0] > 1 && form.pixels() > 1;
}

bool same_order(const Form& a, const Form& b) {
  if (is_turned(a) != is_turned(b)) return false;
  return !is_turned(a) || a.dims[0] == b.dims[0];
}

/// The same dims in our order: [C, H, W] as [H, W, C].
Form turned_back(const Form& form) {
  Form result{.dims = {form.dims.begin() + 1, form.dims.end()}};
  result.dims.push_back(form.dims[0]);
  return result;
}

}  // namespace

int64_t Form::pixels() const {
  return std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>());
}

Form Form::with_channels(int64_t channels) const {
  Form form = *this;
  form.dims[0] = channels;
  return form;
}

Form form_of(const Shape& sample) { return {.dims = {sample.begin(), sample.end()}}; }

Form channels_first(const Shape& sample) {
  Form form = form_of(sample);
  if (sample.rank() != 2 && sample.rank() != 3) return form;
  std::rotate(form.dims.begin(), form.dims.end() - 1, form.dims.end());
  form.channels_first = true;
  return form;
}

std::vector<int64_t> channel_dims(const Form& form, int64_t channels) {
  if (channels == 1) return {};
  std::vector<int64_t> dims(form.channels_first ? form.dims.size() : 1, 1);
  dims[0] = channels;
  return dims;
}

std::string end_name(const std::string& what, size_t i, size_t count) {
  return count == 1 ? what : what + std::to_string(i);
}

std::string add_reshape(GraphBuilder& graph,
                        const std::string& x,
                        const std::vector<int64_t>& dims,
                        int64_t samples) {
  std::vector<int64_t> shape{samples};
  shape.insert(shape.end(), dims.begin(), dims.end());
  return graph.node("Reshape", {x, graph.constant<int64_t>({std::ssize(shape)}, shape, "shape")});
}

const HeldValues::Held* HeldValues::find(int id, const Form& form) const {
  const std::vector<Held>& held = held_[static_cast<size_t>(id)];
  const auto found =
      std::find_if(held.begin(), held.end(), [&](const Held& h) { return h.form == form; });
  return found == held.end() ? nullptr : &*found;
}

std::string HeldValues::add(int id, const Form& form, std::string name) {
  held_[static_cast<size_t>(id)].push_back({form, name});
  return name;
}

void HeldValues::set(int id, Form form, std::string name) { add(id, form, std::move(name)); }

std::string HeldValues::get(int id, const Form& form) {
  if (const Held* const held = find(id, form)) return held->name;
  const std::vector<Held>& all = held_[static_cast<size_t>(id)];
  for (const Held& held : all) {
    if (!same_order(held.form, form)) continue;
    // An image in our order and one with its channels first can have the same dims.
    if (held.form.dims == form.dims) return add(id, form, held.name);
    return add(id, form, add_reshape(graph_, held.name, form.dims));
  }
  std::vector<int64_t> perm{0};
  if (is_turned(form)) {
    const auto rank = static_cast<int64_t>(form.dims.size());
    perm.push_back(rank);
    for (int64_t k = 1; k < rank; ++k) perm.push_back(k);
    const std::string x = get(id, turned_back(form));
    return add(id, form, graph_.node("Transpose", {x}, {{"perm", perm}}));
  }
  const Held from = all.front();  // turned, as none has our order
  const auto rank = static_cast<int64_t>(from.form.dims.size());
  for (int64_t k = 2; k <= rank; ++k) perm.push_back(k);
  perm.push_back(1);
  add(id, turned_back(from.form), graph_.node("Transpose", {from.name}, {{"perm", perm}}));
  return get(id, form);
}

Form HeldValues::common_form(const std::vector<int>& ids, const Form& otherwise) const {
  const Form& form = first_form(ids[0]);
  const bool all = std::all_of(ids.begin(), ids.end(), [&](int id) { return has(id, form); });
  return form.channels_first && all ? form : otherwise;
}

}  // namespace quantrain::onnx
