#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "layers/moves.hpp"
#include "layers/network/layer_type.hpp"
#include "layers/onnx/importer.hpp"

// Operators that change the size of images and signals: Pad, Resize, DepthToSpace.
namespace quantrain::onnx {
namespace {

void pad(NodeImport& n) {
  Importer& importer = n.importer;
  if (n.node.get("mode", "constant") != "constant")
    throw Refusal{"mode " + n.node.get("mode", "constant")};
  const float value = n.has(2) ? n.scalar(2) : n.node.get("value", 0.0f);
  const Value& given = n.x();
  const std::vector<int64_t> pads = n.integers(1, "pads");
  std::vector<int64_t> axes = n.has(3) ? n.constant(3).integers() : std::vector<int64_t>();
  if (!n.has(3)) {
    axes.resize(static_cast<size_t>(given.rank()));
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (pads.size() != 2 * axes.size()) throw Refusal{"pads that do not fit its axes"};
  const std::vector<int64_t> unsorted = axes;
  checked_axes(axes, given.rank());
  std::vector<int64_t> before(static_cast<size_t>(given.rank()), 0), after = before;
  for (size_t k = 0; k < axes.size(); ++k) {
    const auto axis = static_cast<size_t>(checked_axis(unsorted[k], given.rank()));
    before[axis] = pads[k];
    after[axis] = pads[axes.size() + k];
    if (std::min(before[axis], after[axis]) < 0) throw Refusal{"pads that are negative"};
    if (std::max(before[axis], after[axis]) >= int64_t{1} << 31)
      throw Refusal{"pads that are too large"};
  }
  const auto pads_axis = [&](size_t i) { return before[i] + after[i] > 0; };
  bool pads_any = false;
  for (size_t i = 0; i < before.size(); ++i) pads_any = pads_any || pads_axis(i);
  if (!pads_any) return n.give(given);
  if (pads_axis(0)) throw Refusal{"works across the samples of a batch"};
  const auto rank = static_cast<size_t>(given.rank());
  const bool is_spatial = (rank == 3 || rank == 4) && !pads_axis(1) && value == 0.0f;
  Value x = given;
  std::shared_ptr<Module> layer;
  if (is_spatial && rank == 4) {
    x = importer.ordered(given, {0, 2, 3, 1});
    layer = std::make_shared<ZeroPad2d>(
        Padding2d{.left = before[3], .right = after[3], .top = before[2], .bottom = after[2]});
  } else if (is_spatial) {
    x = importer.ordered(given, {0, 2, 1});
    layer = std::make_shared<ZeroPad1d>(Padding1d{before[2], after[2]});
  } else {
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    if (rank == 4) order = {0, 2, 3, 1};
    x = importer.ordered(given, order);
    std::vector<int64_t> ours(2 * rank);
    for (size_t k = 0; k < rank; ++k) {
      ours[k] = before[static_cast<size_t>(order[k])];
      ours[rank + k] = after[static_cast<size_t>(order[k])];
    }
    layer = make_layer("pad", {.options = {{"pads", ours}, {"value", double{value}}}});
  }
  if (x.storage->axes.size() != rank) throw Refusal{"mixes the samples of a batch"};
  Value y = importer.function_of(x, std::move(layer));
  y.storage = std::make_shared<Storage>(*x.storage);
  for (size_t i = 1; i < rank; ++i) {
    if (!pads_axis(i)) continue;
    y.axes[i] = importer.atoms().group(
        (Extent{importer.extent(x, static_cast<int>(i))} + Extent{before[i] + after[i]}).n);
    // Images and signals that are padded as such have their channels last.
    const bool rotates = rank == 4 || is_spatial;
    y.storage->axes[rotates ? (i == 1 ? rank - 1 : i - 1) : i] = y.axes[i];
  }
  n.give(std::move(y));
}

/// The index in the input from which Resize with mode nearest takes output i.
int64_t nearest(const std::string& coordinates,
                const std::string& rounding,
                int64_t i,
                int64_t factor,
                int64_t extent) {
  const auto scale = static_cast<double>(factor);
  const auto at = static_cast<double>(i);
  double x = at / scale;
  if (coordinates == "half_pixel" || coordinates == "pytorch_half_pixel") {
    x = extent * factor == 1 && coordinates == "pytorch_half_pixel" ? 0.0
                                                                    : (at + 0.5) / scale - 0.5;
  } else if (coordinates == "align_corners") {
    x = extent * factor == 1
            ? 0.0
            : at * static_cast<double>(extent - 1) / static_cast<double>(extent * factor - 1);
  } else if (coordinates == "tf_half_pixel_for_nn") {
    x = (at + 0.5) / scale;
  } else if (coordinates != "asymmetric") {
    throw Refusal{"coordinates " + coordinates};
  }
  double rounded = std::floor(x);
  if (rounding == "ceil") {
    rounded = std::ceil(x);
  } else if (rounding == "round_prefer_floor") {
    rounded = std::ceil(x - 0.5);
  } else if (rounding == "round_prefer_ceil") {
    rounded = std::floor(x + 0.5);
  } else if (rounding != "floor") {
    throw Refusal{"rounding " + rounding};
  }
  return std::clamp(static_cast<int64_t>(rounded), int64_t{0}, extent - 1);
}

void resize(NodeImport& n) {
  Importer& importer = n.importer;
  const Value& given = n.x();
  const std::string mode = n.node.get("mode", "nearest");
  if (mode != "nearest") throw Refusal{"mode " + mode};
  if (given.rank() != 3 && given.rank() != 4)
    throw Refusal{"of other axes than a signal's or an image's"};
  const auto rank = static_cast<size_t>(given.rank());
  const bool is_upsample = n.node.op_type == "Upsample";
  const size_t scales_at = is_upsample || importer.opset() < 11 ? 1 : 2;
  std::vector<float> scales;
  if (n.has(scales_at)) scales = n.constant(scales_at).floats();
  if (is_upsample && !n.has(1)) scales = n.node.get("scales", std::vector<float>());
  std::vector<Extent> sizes;  // the first may be the number of samples
  if (scales.empty() && n.has(3)) sizes = n.constant(3).extents();
  const std::string policy = n.node.get("keep_aspect_ratio_policy", "stretch");
  if (!sizes.empty() && policy != "stretch") throw Refusal{"keep_aspect_ratio_policy " + policy};
  std::vector<int64_t> axes = n.node.get("axes", std::vector<int64_t>());
  if (axes.empty()) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  checked_axes(axes, given.rank());
  if (scales.size() + sizes.size() != axes.size()) throw Refusal{"sizes that do not fit its axes"};
  const std::string coordinates = importer.opset() < 11
                                      ? "asymmetric"
                                      : n.node.get("coordinate_transformation_mode", "half_pixel");
  const std::string rounding =
      importer.opset() < 11 ? "floor" : n.node.get("nearest_mode", "round_prefer_floor");
  std::vector<int64_t> factors(rank, 1);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int axis = checked_axis(axes[k], given.rank());
    int64_t& factor = factors[static_cast<size_t>(axis)];
    if (axis == 0) {
      const bool keeps = scales.empty() ? sizes[k] == Extent{1, true} ||
                                              sizes[k] == Extent{importer.declared_batch()}
                                        : scales[k] == 1.0f;
      if (!keeps) throw Refusal{"works across the samples of a batch"};
      continue;
    }
    if (!sizes.empty() && sizes[k].batch) throw Refusal{"to the number of samples"};
    const int64_t extent = importer.extent(given, axis);
    const double ratio = scales.empty()
                             ? static_cast<double>(sizes[k].n) / static_cast<double>(extent)
                             : static_cast<double>(scales[k]);
    if (!(ratio >= 1.0 && ratio < 65536.0 && ratio == std::floor(ratio)))
      throw Refusal{"by a factor that is not a whole number"};
    factor = static_cast<int64_t>(ratio);
    if (axis == 1 && factor != 1) throw Refusal{"of the channels"};
    if (extent > (int64_t{1} << 16) / factor) throw Refusal{"to an extent that is too large"};
    importer.budget().take(extent * factor);
    for (int64_t i = 0; i < extent * factor; ++i) {
      if (nearest(coordinates, rounding, i, factor, extent) != i / factor)
        throw Refusal{"coordinates " + coordinates + " with rounding " + rounding +
                      ", which do not repeat each element equally often"};
    }
  }
  const Value x =
      importer.ordered(given, rank == 4 ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{0, 2, 1});
  if (x.storage->axes.size() != rank) throw Refusal{"mixes the samples of a batch"};
  const Size2d scale(factors[2], rank == 4 ? factors[3] : 1);
  Value y = importer.function_of(x, std::make_shared<Upsample>(scale));
  y.storage = std::make_shared<Storage>(*x.storage);
  for (size_t i = 2; i < rank; ++i) {
    y.axes[i] = importer.atoms().group(importer.extent(x, static_cast<int>(i)) * factors[i]);
    y.storage->axes[i - 1] = y.axes[i];
  }
  n.give(std::move(y));
}

/// DepthToSpace and SpaceToDepth are a reshape, a transpose and a reshape.
void depth_to_space(NodeImport& n) {
  Importer& importer = n.importer;
  const Value& x = n.x();
  const int64_t block = n.node.get("blocksize", int64_t{0});
  if (x.rank() != 4 || block < 1 || block > 65536) throw Refusal{"of other axes than an image's"};
  const int64_t c = importer.extent(x, 1), h = importer.extent(x, 2), w = importer.extent(x, 3);
  if (c % (block * block) != 0) throw Refusal{"blocks do not divide the channels"};
  const Extent batch{1, true}, b{block}, depth{c / (block * block)};
  const bool is_dcr = n.node.get("mode", "DCR") == "DCR";
  Value y = importer.reshaped(x,
                              is_dcr ? std::vector<Extent>{batch, b, b, depth, {h}, {w}}
                                     : std::vector<Extent>{batch, depth, b, b, {h}, {w}});
  const Groups a = y.axes;
  y.axes = is_dcr ? Groups{a[0], a[3], flat({a[4], a[1]}), flat({a[5], a[2]})}
                  : Groups{a[0], a[1], flat({a[4], a[2]}), flat({a[5], a[3]})};
  n.give(std::move(y));
}

void space_to_depth(NodeImport& n) {
  Importer& importer = n.importer;
  const Value& x = n.x();
  const int64_t block = n.node.get("blocksize", int64_t{0});
  if (x.rank() != 4 || block < 1 || block > 65536) throw Refusal{"of other axes than an image's"};
  const int64_t c = importer.extent(x, 1), h = importer.extent(x, 2), w = importer.extent(x, 3);
  if (h % block != 0 || w % block != 0) throw Refusal{"blocks do not divide the image"};
  Value y = importer.reshaped(x, {{1, true}, {c}, {h / block}, {block}, {w / block}, {block}});
  const Groups a = y.axes;
  y.axes = {a[0], flat({a[3], a[5], a[1]}), a[2], a[4]};
  n.give(std::move(y));
}

}  // namespace

void add_images(HandlerTable& table) {
  table["DepthToSpace"] = depth_to_space;
  table["Pad"] = pad;
  table["Resize"] = resize;
  table["SpaceToDepth"] = space_to_depth;
  table["Upsample"] = resize;
}

}  // namespace quantrain::onnx
