#include "framework/integer/gather.hpp"

#include <algorithm>
#include <numeric>

#include "framework/core/error.hpp"
#include "framework/core/parallel.hpp"
#include "framework/integer/sizes.hpp"

namespace quantrain::integer {
namespace {

constexpr int64_t kGrain = 32768;  // elements of a block

template <class T>
void copy(const T* from, int64_t length, T* to) {
  // For a few elements, a call of memmove() costs more than the loop.
  if (length < 16) {
    for (int64_t i = 0; i < length; ++i) to[i] = from[i];
  } else {
    std::copy_n(from, length, to);
  }
}

/// Each innermost row of y is gathered from one innermost row of x, or is all fill. Returns the
/// offset of the row of x that row number `row` of y is gathered from, or -1 for fill.
int64_t row_begin(const Gather& op, int64_t x_line, int64_t row) {
  int64_t stride = x_line;
  int64_t begin = 0;
  for (size_t k = op.axes.size() - 1; k-- > 0;) {
    const Gather::Axis& axis = op.axes[k];
    const auto places = static_cast<int64_t>(axis.index.size());
    const int64_t index = axis.index[static_cast<size_t>(row % places)];
    if (index < 0) return -1;
    begin += index * stride;
    stride *= axis.extent;
    row /= places;
  }
  return begin + row * stride;
}

}  // namespace

Gather Gather::make(const Shape& x, const std::vector<std::vector<int32_t>>& index, int32_t fill) {
  const auto moves = [](const std::vector<int32_t>& list) { return !list.empty(); };
  Gather op{.rows = 1, .axes = {}, .fill = fill, .run = 1};
  const auto first = std::find_if(index.begin(), index.end(), moves);
  const auto end = std::find_if(index.rbegin(), index.rend(), moves).base();
  for (size_t k = 0; k < index.size(); ++k) {
    const int64_t extent = x[static_cast<int>(k)];
    const auto at = index.begin() + static_cast<std::ptrdiff_t>(k);
    if (at < first) {
      op.rows *= extent;
    } else if (at >= end) {
      op.run *= extent;
    } else {
      op.axes.push_back({extent, *at});
      std::vector<int32_t>& list = op.axes.back().index;
      if (!list.empty()) continue;
      list.resize(static_cast<size_t>(extent));
      std::iota(list.begin(), list.end(), 0);
    }
  }
  return op;
}

// Plain loops, because GCC unrolls std::any_of and std::find into 2 kB.
bool Gather::fills() const {
  for (const Axis& axis : axes) {
    for (const int32_t index : axis.index) {
      if (index == -1) return true;
    }
  }
  return false;
}

int64_t Gather::x_row() const {
  int64_t elements = run;
  for (const Axis& axis : axes) elements *= axis.extent;
  return elements;
}

int64_t Gather::y_row() const {
  int64_t elements = run;
  for (const Axis& axis : axes) elements *= static_cast<int64_t>(axis.index.size());
  return elements;
}

std::optional<CodeClamp> Gather::output_codes(const QParams& x) const {
  if (!fills()) return std::nullopt;
  const int32_t offset = stored_offset(x.type);
  return CodeClamp{std::min(x.type.qmin() + offset, fill), std::max(x.type.qmax() + offset, fill)};
}

int64_t Gather::prepared_bytes() const {
  return static_cast<int64_t>(axes.back().index.size() * sizeof(GatherRun));
}

Channels Gather::output_channels(InputChannels inputs) const {
  const Channels& x = *inputs[0];
  const auto channels = static_cast<int64_t>(x.size());
  const Gather::Axis& last = axes.back();
  Channels result;
  if (run % channels == 0) {
    result = x;  // whole pixels move, so channels stay the same
  } else if (last.extent * run == channels) {
    for (const int32_t index : last.index) {
      for (int64_t r = 0; r < run; ++r) {
        result.push_back(index < 0 ? Interval{fill, fill}
                                   : x[static_cast<size_t>(index * run + r)]);
      }
    }
  } else {
    result = {all_of(x)};
  }
  if (!fills()) return result;
  for (Interval& channel : result) channel = channel.joined({fill, fill});
  return result;
}

void Gather::validate(std::string_view where) const {
  if (axes.empty() || axes.size() > static_cast<size_t>(kMostAxes))
    throw ShapeError(where, "a gather along ", axes.size(), " axes, expected 1 to ", kMostAxes);
  int64_t of_x = 1;
  int64_t of_y = 1;
  check_size(where, {rows, run});
  of_x = of_y = rows * run;
  for (size_t k = 0; k < axes.size(); ++k) {
    const Axis& axis = axes[k];
    const auto places = static_cast<int64_t>(axis.index.size());
    check_size(where, {of_x, axis.extent});
    check_size(where, {of_y, places});
    of_x *= axis.extent;
    of_y *= places;
    bool takes = false;
    for (const int32_t index : axis.index) {
      if (index < -1 || index >= axis.extent) {
        throw ShapeError(where,
                         "index ",
                         index,
                         " is outside axis ",
                         k,
                         ", which has ",
                         axis.extent,
                         " elements: expected an index, or -1 for the fill");
      }
      takes = takes || index >= 0;
    }
    if (!takes)
      throw ShapeError(where, "all indices of axis ", k, " are -1: nothing is taken from x");
  }
  if (fill < 0 || fill > 255) throw QuantError(where, "the fill ", fill, " is not in [0, 255]");
}

std::vector<GatherRun> gather_runs(const Gather::Axis& axis, int64_t run) {
  std::vector<GatherRun> runs;
  int32_t previous = -2;
  for (const int32_t index : axis.index) {
    const bool goes_on = index < 0 ? previous == -1 : previous >= 0 && index == previous + 1;
    if (!goes_on || runs.empty()) runs.push_back({index < 0 ? -1 : index * run, 0});
    runs.back().length += run;
    previous = index;
  }
  return runs;
}

template <class T>
void gather(
    const Gather& op, std::span<const GatherRun> runs, int64_t n, const T* x, T fill, T* y) {
  const Gather::Axis& last = op.axes.back();
  const int64_t x_line = last.extent * op.run;
  const int64_t y_line = static_cast<int64_t>(last.index.size()) * op.run;
  if (n <= 0 || y_line == 0) return;
  parallel_for(n * op.output_size() / y_line,
               std::max<int64_t>(1, kGrain / y_line),
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   T* to = y + row * y_line;
                   const int64_t from = row_begin(op, x_line, row);
                   if (from < 0) {
                     std::fill_n(to, y_line, fill);
                     continue;
                   }
                   for (const GatherRun& run : runs) {
                     if (run.from < 0) {
                       std::fill_n(to, run.length, fill);
                     } else {
                       copy(x + from + run.from, run.length, to);
                     }
                     to += run.length;
                   }
                 }
               });
}

template void gather(
    const Gather&, std::span<const GatherRun>, int64_t, const uint8_t*, uint8_t, uint8_t*);
template void gather(
    const Gather&, std::span<const GatherRun>, int64_t, const float*, float, float*);

Prepared<Gather>::Prepared(const Gather& op)
    : op_(&op), runs_(gather_runs(op.axes.back(), op.run)) {}

void Prepared<Gather>::run(int64_t n, Inputs inputs, void* output) const {
  gather(*op_, runs_, n, inputs[0], static_cast<uint8_t>(op_->fill), static_cast<uint8_t*>(output));
}

}  // namespace quantrain::integer
