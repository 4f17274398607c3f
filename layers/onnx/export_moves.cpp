#include <algorithm>
#include <limits>

#include "layers/onnx/exporter.hpp"

// Moves and reductions.
namespace quantrain::onnx {
namespace {

using Numbers = std::vector<int64_t>;

/// The form of an input that keeps its axes: as it was computed, if that has the channels first.
Form with_axes(NodeExport& out) {
  const Shape sample = out.sample();
  const Form images = channels_first(sample);
  return out.first_form(0) == images ? images : form_of(sample);
}

/// The axis in the file of an axis of ours. Axis 0 is that of the samples.
int64_t axis_in(const Form& form, int64_t axis) {
  if (axis == 0) throw NoForm{"it moves along the samples of a batch"};
  if (!form.channels_first) return axis;
  return axis == std::ssize(form.dims) ? 1 : axis + 1;
}

Form same_order(const Form& form, const Shape& sample) {
  return form.channels_first ? channels_first(sample) : form_of(sample);
}

std::string list_constant(NodeExport& out, const Numbers& values, const char* what) {
  return out.graph.constant<int64_t>({std::ssize(values)}, values, what);
}

void export_view(NodeExport& out) {
  out.y_sample();  // samples stay samples
  out.x();
  out.values.alias(out.ids[0], out.y);
}

void export_slice(NodeExport& out) {
  const Form form = with_axes(out);
  const int64_t axis = axis_in(form, out.attributes.integer("axis"));
  const int64_t begin = out.attributes.integer("begin"), step = out.attributes.integer("step");
  int64_t end = begin + step * out.attributes.integer("count");
  if (end < 0) end = std::numeric_limits<int64_t>::min();  // before the first element
  out.give(same_order(form, out.y_sample()),
           out.add("Slice",
                   {out.x(form),
                    list_constant(out, {begin}, "starts"),
                    list_constant(out, {end}, "ends"),
                    list_constant(out, {axis}, "axes"),
                    list_constant(out, {step}, "steps")}));
}

void export_take(NodeExport& out) {
  const Form form = with_axes(out);
  const int64_t axis = axis_in(form, out.attributes.integer("axis"));
  const Numbers& indices = out.attributes.integers("indices");
  out.give(
      same_order(form, out.y_sample()),
      out.add("Gather", {out.x(form), list_constant(out, indices, "indices")}, {{"axis", axis}}));
}

void export_pad(NodeExport& out) {
  const Form form = with_axes(out);
  const Numbers& ours = out.attributes.integers("pads");
  const size_t rank = ours.size() / 2;
  if (ours[0] != 0 || ours[rank] != 0) throw NoForm{"it adds samples to a batch"};
  Numbers pads(ours.size());
  for (size_t k = 1; k < rank; ++k) {
    const auto to = static_cast<size_t>(axis_in(form, static_cast<int64_t>(k)));
    pads[to] = ours[k];
    pads[rank + to] = ours[rank + k];
  }
  const auto value = static_cast<float>(out.attributes.real("value"));
  out.give(
      same_order(form, out.y_sample()),
      out.add("Pad",
              {out.x(form), list_constant(out, pads, "pads"), out.graph.scalar<float>(value)}));
}

void export_upsample(NodeExport& out) {
  const Numbers& scale = out.attributes.integers("scale");
  const std::vector<float> scales{
      1.0f, 1.0f, static_cast<float>(scale[0]), static_cast<float>(scale[1])};
  out.give(channels_first(out.y_sample()),
           out.add("Resize",
                   {out.x(channels_first(out.sample())),
                    "",
                    out.graph.constant<float>({4}, scales, "scales")},
                   {{"coordinate_transformation_mode", std::string("asymmetric")},
                    {"mode", std::string("nearest")},
                    {"nearest_mode", std::string("floor")}}));
}

void export_transpose(NodeExport& out) {
  const Numbers& perm = out.attributes.integers("perm");
  if (perm[0] != 0) throw NoForm{"it mixes the samples of a batch"};
  out.give(form_of(out.y_sample()),
           out.add("Transpose", {out.x(form_of(out.sample()))}, {{"perm", perm}}));
}

void export_concat(NodeExport& out) {
  Form form = with_axes(out);
  for (size_t i = 1; i < out.node.inputs.size(); ++i) {
    const bool is_image =
        out.is_data(i) && out.values.has(out.ids[i], channels_first(out.sample(i)));
    if (!is_image) form = form_of(out.sample());
  }
  const int64_t axis = axis_in(form, out.attributes.integer("axis"));
  std::vector<std::string> inputs;
  for (size_t i = 0; i < out.node.inputs.size(); ++i)
    inputs.push_back(out.x(same_order(form, out.sample(i)), i));
  out.give(same_order(form, out.y_sample()),
           out.add("Concat", std::move(inputs), {{"axis", axis}}));
}

Exporter export_reduction(bool is_mean) {
  return [is_mean](NodeExport& out) {
    const Numbers& axes = out.attributes.integers("axes");
    if (std::find(axes.begin(), axes.end(), 0) != axes.end())
      throw NoForm{"it mixes the samples of a batch"};
    const int64_t keeps = out.attributes.integer("keepdims");
    const std::string x = out.x(form_of(out.sample()));
    out.give(
        form_of(out.y_sample()),
        is_mean
            ? out.add("ReduceMean", {x}, {{"axes", axes}, {"keepdims", keeps}})
            : out.add("ReduceSum", {x, list_constant(out, axes, "axes")}, {{"keepdims", keeps}}));
  };
}

}  // namespace

void add_move_exporters(ExporterTable& table) {
  table["flatten"] = table["reshape"] = export_view;
  table["slice"] = export_slice;
  table["take"] = export_take;
  table["pad"] = export_pad;
  table["upsample_nearest"] = export_upsample;
  table["transpose"] = export_transpose;
  table["concat"] = export_concat;
  table["mean"] = export_reduction(true);
  table["sum"] = export_reduction(false);
}

}  // namespace quantrain::onnx
