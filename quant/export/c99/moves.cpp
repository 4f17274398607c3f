#include "quant/export/c99/moves.hpp"

#include <algorithm>
#include <optional>

#include "quant/export/c99/text.hpp"

namespace quantrain::c99 {
namespace {

using integer::Gather;

/// An axis whose indices need no table: index[i] = begin + (i - lo) / repeat * step for i in [lo,
/// hi), with integer division. Elsewhere index[i] = -1, which stands for the fill value.
struct Regular {
  int64_t lo = 0, hi = 0, begin = 0, repeat = 1, step = 1;

  int32_t at(int64_t i) const {
    return i < lo || i >= hi ? -1 : static_cast<int32_t>(begin + (i - lo) / repeat * step);
  }
};

std::optional<Regular> regular(const std::vector<int32_t>& index) {
  const auto size = static_cast<int64_t>(index.size());
  const auto at = [&](int64_t i) { return index[static_cast<size_t>(i)]; };
  Regular r;
  while (at(r.lo) < 0) ++r.lo;  // a valid axis reads an element of x
  r.hi = size;
  while (at(r.hi - 1) < 0) --r.hi;
  r.begin = at(r.lo);
  while (r.lo + r.repeat < r.hi && at(r.lo + r.repeat) == r.begin) ++r.repeat;
  if (r.lo + r.repeat < r.hi) r.step = at(r.lo + r.repeat) - r.begin;
  for (int64_t i = 0; i < size; ++i) {
    if (r.at(i) != at(i)) return std::nullopt;
  }
  return r;
}

/// Writes the C code of a gather: nested loops over the rows and the axes. If the last axis is
/// contiguous, it is copied as a whole.
class Moves {
 public:
  Moves(const Gather& op, std::string id) : op_(op), id_(std::move(id)) {}

  StepSource source() {
    const std::string axes = axis(0, "x");
    std::string counters = "i";
    for (size_t k = 0; k < counters_; ++k) counters += cat(", i", k);
    source_.text += fill("gather_step",
                         {{"ID", id_},
                          {"COUNTERS", counters},
                          {"ROWS", op_.rows},
                          {"AXES", axes},
                          {"X_ROW", op_.x_row()}});
    return std::move(source_);
  }

 private:
  /// Number of elements that one index of axis k covers, in x and in y.
  int64_t x_size(size_t k) const {
    int64_t size = op_.run;
    for (size_t j = k + 1; j < op_.axes.size(); ++j) size *= op_.axes[j].extent;
    return size;
  }
  int64_t y_size(size_t k) const {
    int64_t size = op_.run;
    for (size_t j = k + 1; j < op_.axes.size(); ++j)
      size *= static_cast<int64_t>(op_.axes[j].index.size());
    return size;
  }

  std::string copied(const std::string& from, int64_t bytes) const {
    if (bytes == 0) return "";
    if (bytes == 1) return fill("gather_code", {{"FROM", from}});
    return fill("gather_codes", {{"FROM", from}, {"BYTES", bytes}});
  }
  std::string filled(int64_t bytes) const {
    return bytes == 0 ? "" : fill("gather_fill", {{"CODE", op_.fill}, {"BYTES", bytes}});
  }

  /// The loops from axis k on. x: the C expression of the address at which this axis begins.
  std::string axis(size_t k, const std::string& x) {
    const std::vector<int32_t>& index = op_.axes[k].index;
    const bool last = k + 1 == op_.axes.size();
    const int64_t from = x_size(k), to = y_size(k), size = static_cast<int64_t>(index.size());
    const std::optional<Regular> r = regular(index);
    if (last && r && r->repeat == 1 && (r->step == 1 || r->hi - r->lo == 1)) {
      return filled(r->lo * to) + copied(cat(x, " + ", r->begin * from), (r->hi - r->lo) * to) +
             filled((size - r->hi) * to);
    }
    counters_ = k + 1;
    const std::string place = cat("x", k);
    if (!r) return irregular(k, x);
    return filled(r->lo * to) +
           fill("gather_regular",
                {{"K", k},
                 {"SIZE", r->hi - r->lo},
                 {"FROM", r->begin == 0 ? x : cat(x, " + ", r->begin * from)},
                 {"REPEATS", r->repeat != 1},
                 {"REPEAT", r->repeat},
                 {"STRIDE", r->step * from},
                 {"BODY", last ? copied(place, op_.run) : axis(k + 1, place)}}) +
           filled((size - r->hi) * to);
  }

  std::string irregular(size_t k, const std::string& x) {
    const std::vector<int32_t>& index = op_.axes[k].index;
    const bool last = k + 1 == op_.axes.size();
    const bool narrow = op_.axes[k].extent <= 32768;
    source_.text +=
        table<int32_t>(narrow ? "int16_t" : "int32_t", cat("index", id_, "_", k), index);
    source_.table_bytes += static_cast<int64_t>(index.size()) * (narrow ? 2 : 4);
    const std::string place = cat("x", k);
    return fill("gather_indexed",
                {{"ID", id_},
                 {"K", k},
                 {"SIZE", index.size()},
                 {"FROM", x},
                 {"FILLS", std::find(index.begin(), index.end(), -1) != index.end()},
                 {"FILL", filled(y_size(k))},
                 {"STRIDE", x_size(k)},
                 {"BODY", last ? copied(place, op_.run) : axis(k + 1, place)}});
  }

  const Gather& op_;
  std::string id_;
  size_t counters_ = 0;
  StepSource source_;
};

}  // namespace

StepSource step_source(const integer::Gather& op, const std::string& id) {
  return Moves(op, id).source();
}

}  // namespace quantrain::c99
