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
    const std::string body = axis(0, "x", "    ");
    std::string variables = "  int32_t i";
    for (size_t k = 0; k < counters_; ++k) variables += cat(", i", k);
    source_.text += cat("static void step",
                        id_,
                        "(const uint8_t *x, uint8_t *y) {\n",
                        variables,
                        ";\n  for (i = 0; i < ",
                        op_.rows,
                        "; ++i) {\n",
                        body,
                        "    x += ",
                        op_.x_row(),
                        ";\n  }\n}\n");
    source_.call = cat("step", id_, "(X0, Y);");
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

  std::string copied(const std::string& from, int64_t bytes, const std::string& in) const {
    if (bytes == 0) return "";
    if (bytes == 1) return cat(in, "*y++ = *(", from, ");\n");
    return cat(in, "memcpy(y, ", from, ", ", bytes, ");\n", in, "y += ", bytes, ";\n");
  }
  std::string filled(int64_t bytes, const std::string& in) const {
    if (bytes == 0) return "";
    return cat(in, "memset(y, ", op_.fill, ", ", bytes, ");\n", in, "y += ", bytes, ";\n");
  }

  /// The loops from axis k on. x: the C expression of the address at which this axis begins. in:
  /// the indentation.
  std::string axis(size_t k, const std::string& x, const std::string& in) {
    const std::vector<int32_t>& index = op_.axes[k].index;
    const bool last = k + 1 == op_.axes.size();
    const int64_t from = x_size(k), to = y_size(k), size = static_cast<int64_t>(index.size());
    const std::optional<Regular> r = regular(index);
    if (last && r && r->repeat == 1 && (r->step == 1 || r->hi - r->lo == 1)) {
      return filled(r->lo * to, in) +
             copied(cat(x, " + ", r->begin * from), (r->hi - r->lo) * to, in) +
             filled((size - r->hi) * to, in);
    }
    counters_ = k + 1;
    const std::string i = cat("i", k), inner = in + "  ", place = cat("x", k);
    if (!r) return irregular(k, x, in);
    const std::string begin = cat(x, r->begin == 0 ? "" : cat(" + ", r->begin * from));
    const std::string moved = r->repeat == 1
                                  ? cat(i, " * ", "(", r->step * from, ")")
                                  : cat(i, " / ", r->repeat, " * ", "(", r->step * from, ")");
    return filled(r->lo * to, in) +
           cat(in, "for (", i, " = 0; ", i, " < ", r->hi - r->lo, "; ++", i, ") {\n") +
           cat(inner, "const uint8_t *const ", place, " = ", begin, " + ", moved, ";\n") +
           (last ? copied(place, op_.run, inner) : axis(k + 1, place, inner)) + in + "}\n" +
           filled((size - r->hi) * to, in);
  }

  std::string irregular(size_t k, const std::string& x, const std::string& in) {
    const std::vector<int32_t>& index = op_.axes[k].index;
    const bool last = k + 1 == op_.axes.size();
    const bool narrow = op_.axes[k].extent <= 32768;
    const std::string name = cat("index", id_, "_", k), i = cat("i", k), inner = in + "  ";
    source_.text += table<int32_t>(narrow ? "int16_t" : "int32_t", name, index);
    source_.table_bytes += static_cast<int64_t>(index.size()) * (narrow ? 2 : 4);
    const std::string place = cat("x", k);
    const bool fills = std::find(index.begin(), index.end(), -1) != index.end();
    std::string text = cat(in, "for (", i, " = 0; ", i, " < ", index.size(), "; ++", i, ") {\n");
    text += cat(inner, "const uint8_t *", place, " = ", x, ";\n");
    if (fills) {
      text += cat(inner,
                  "if (",
                  name,
                  "[",
                  i,
                  "] < 0) {\n",
                  filled(y_size(k), inner + "  "),
                  inner,
                  "  continue;\n",
                  inner,
                  "}\n");
    }
    text += cat(inner, place, " += (int32_t)", name, "[", i, "] * ", x_size(k), ";\n");
    text += last ? copied(place, op_.run, inner) : axis(k + 1, place, inner);
    return text + in + "}\n";
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
