#include <algorithm>
#include <array>
#include <numeric>

#include "quant/export/onnx/exact.hpp"
#include "quant/export/onnx/fixed_point.hpp"
#include "quant/export/onnx/forms.hpp"

// Tables and moves.
namespace quantrain::onnx_export {
namespace {

using onnx::ElementType;

/// table[x], for a table of uint8.
std::string look_up(onnx::GraphBuilder& graph,
                    const std::string& x,
                    const std::vector<uint8_t>& table) {
  const std::string name = graph.constant<uint8_t>({std::ssize(table)}, table, "table");
  return graph.node("Gather", {name, cast(graph, x, ElementType::kInt32)});
}

bool changes_nothing(const integer::CodeTable& table) {
  for (size_t q = 0; q < table.size(); ++q) {
    if (table[q] != q) return false;
  }
  return true;
}

}  // namespace

// docs/quantization.md (18)
void exact_lookup(Export& out, const integer::QuantizedLookup& op, int x, int y) {
  const int64_t channels = op.channels();
  Form form = out.values.first_form(x);
  if (channels == 1) {
    const std::string codes = look_up(out.graph, out.values.get(x, form), op.table);
    out.values.set(y, form, codes);
    return;
  }
  const bool is_image = form.channels_first && form.dims[0] == channels;
  if (!is_image) form = {.dims = {op.size / channels, channels}};
  std::vector<int32_t> first;
  for (int64_t c = 0; c < channels; ++c)
    first.push_back(static_cast<int32_t>(c * integer::QuantizedLookup::kCodes));
  const std::vector<int64_t> dims = onnx::channel_dims(form, channels);
  const std::string codes = cast(out.graph, out.values.get(x, form), ElementType::kInt32);
  const std::string at =
      out.graph.node("Add", {codes, out.graph.constant<int32_t>(dims, first, "tables")});
  const std::string table = out.graph.constant<uint8_t>({std::ssize(op.table)}, op.table, "table");
  out.values.set(y, form, out.graph.node("Gather", {table, at}));
}

// docs/quantization.md (11)
void exact_concat(Export& out,
                  const integer::QuantizedConcat& op,
                  const std::vector<int>& x,
                  int y) {
  // Images are joined along their channels as they are.
  const Form first = out.values.first_form(x[0]);
  bool are_images = first.channels_first && first.pixels() == op.rows;
  const auto image = [&](size_t i) { return first.with_channels(op.parts[i].run); };
  for (size_t i = 0; are_images && i < x.size(); ++i) are_images = out.values.has(x[i], image(i));
  std::vector<std::string> parts;
  for (size_t i = 0; i < x.size(); ++i) {
    const integer::QuantizedConcat::Part& part = op.parts[i];
    const Form form = are_images ? image(i) : Form{{op.rows, part.run}};
    parts.push_back(out.values.get(x[i], form));
    const integer::CodeTable table = integer::rescale_table(part.zero_x, part.multiplier, op.y);
    if (!changes_nothing(table))
      parts.back() = look_up(out.graph, parts.back(), {table.begin(), table.end()});
  }
  const int64_t axis = are_images ? 1 : 2;
  const Form form =
      are_images ? first.with_channels(op.row_length()) : Form{{op.rows, op.row_length()}};
  out.values.set(y, form, out.graph.node("Concat", parts, {{"axis", axis}}));
}

// docs/quantization.md (23)
void exact_gather(Export& out, const integer::Gather& op, int x, int y) {
  const auto extents = [&](const auto& extent) {
    Form form{.dims = {op.rows}};
    for (const integer::Gather::Axis& axis : op.axes) form.dims.push_back(extent(axis));
    form.dims.push_back(op.run);
    return form;
  };
  const Form from = extents([](const auto& axis) { return axis.extent; });
  const Form to = extents([](const auto& axis) { return std::ssize(axis.index); });
  std::string moved = out.values.get(x, from);
  for (size_t k = 0; k < op.axes.size(); ++k) {
    std::vector<int32_t> index = op.axes[k].index;
    const auto extent = static_cast<int32_t>(op.axes[k].extent);
    std::vector<int32_t> all(static_cast<size_t>(extent));
    std::iota(all.begin(), all.end(), 0);
    if (index == all) continue;
    if (std::find(index.begin(), index.end(), -1) != index.end()) {
      // One element of fill after the others, from which all fill is taken.
      std::vector<int64_t> pads(2 * (from.dims.size() + 1));
      pads[from.dims.size() + 1 + k + 2] = 1;
      moved = out.graph.node("Pad",
                             {moved,
                              out.graph.constant<int64_t>({std::ssize(pads)}, pads, "pads"),
                              out.graph.scalar(static_cast<uint8_t>(op.fill), "fill")});
      std::replace(index.begin(), index.end(), -1, extent);
    }
    moved =
        out.graph.node("Gather",
                       {moved, out.graph.constant<int32_t>({std::ssize(index)}, index, "index")},
                       {{"axis", static_cast<int64_t>(k + 2)}});
  }
  out.values.set(y, to, moved);
}

}  // namespace quantrain::onnx_export
