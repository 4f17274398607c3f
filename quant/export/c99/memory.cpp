#include "quant/export/c99/memory.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <random>

#include "framework/integer/operation.hpp"

namespace quantrain::c99 {
namespace {

using integer::Operation;
using integer::Program;
using integer::Step;
using kernels::Conv2dShape;

/// What a step reads and writes, pixel by pixel: output pixel p needs the input's bytes
/// [first[p], last[p]) and fills the output's bytes [p * bytes, (p + 1) * bytes).
struct Traversal {
  std::vector<int64_t> first, last;
  int64_t bytes = 1;
  int64_t together = 1;  ///< pixels that are computed at the same time
};

Traversal window_traversal(const Conv2dShape& s, int64_t together) {
  Traversal t{.first = {}, .last = {}, .bytes = s.o, .together = together};
  const auto inside = [](int64_t i, int64_t extent) {
    return std::clamp<int64_t>(i, 0, extent - 1);
  };
  for (int64_t i = 0; i < s.oh(); ++i) {
    for (int64_t j = 0; j < s.ow(); ++j) {
      const int64_t top = i * s.stride_h - s.pad_h, left = j * s.stride_w - s.pad_w;
      t.first.push_back((inside(top, s.h) * s.w + inside(left, s.w)) * s.c);
      t.last.push_back(
          (inside(top + s.window_h() - 1, s.h) * s.w + inside(left + s.window_w() - 1, s.w) + 1) *
          s.c);
    }
  }
  return t;
}

int64_t lead_of(const Traversal& t, Order order) {
  const auto pixels = static_cast<int64_t>(t.first.size());
  const auto at = [](const std::vector<int64_t>& v, int64_t i) {
    return v[static_cast<size_t>(i)];
  };
  int64_t result = 0;
  if (order == Order::kForward) {
    // While the pixels [begin, end) are written, these and all later pixels still read the input.
    // The first byte that they read is `needed`.
    int64_t needed = std::numeric_limits<int64_t>::max();
    for (int64_t begin = (pixels - 1) / t.together * t.together; begin >= 0; begin -= t.together) {
      const int64_t end = std::min(begin + t.together, pixels);
      for (int64_t p = begin; p < end; ++p) needed = std::min(needed, at(t.first, p));
      result = std::max(result, end * t.bytes - needed);
    }
  } else {
    int64_t needed = 0;
    for (int64_t begin = 0; begin < pixels; begin += t.together) {
      const int64_t end = std::min(begin + t.together, pixels);
      for (int64_t p = begin; p < end; ++p) needed = std::max(needed, at(t.last, p));
      result = std::max(result, needed - begin * t.bytes);
    }
  }
  return result;
}

struct Lead {
  Order order;
  std::optional<Traversal> operator()(const integer::QuantizedConv2d& op) const {
    const bool depthwise = op.shape.group_c() == 1 && op.shape.group_o() == 1;
    return window_traversal(op.shape, depthwise ? 1 : 2);
  }
  std::optional<Traversal> operator()(const integer::QuantizedLinear& op) const {
    return window_traversal({.w = op.rows, .c = op.inputs, .o = op.outputs}, 2);
  }
  std::optional<Traversal> operator()(const integer::QuantizedMaxPool2d& op) const {
    return window_traversal(op.shape, 1);
  }
  std::optional<Traversal> operator()(const integer::QuantizedAvgPool2d& op) const {
    return window_traversal(op.shape, 1);
  }
  // Runs in place if computed forward: a row's largest code and sum are known before its first
  // element is written.
  std::optional<Traversal> operator()(const integer::QuantizedSoftmax&) const {
    if (order == Order::kForward) return Traversal{};
    return std::nullopt;
  }
  // Element by element: each output replaces its input.
  std::optional<Traversal> operator()(const integer::QuantizedAdd&) const { return Traversal{}; }
  std::optional<Traversal> operator()(const integer::QuantizedLookup&) const { return Traversal{}; }
  std::optional<Traversal> operator()(const integer::QuantizedMul&) const { return Traversal{}; }
  std::optional<Traversal> operator()(const integer::Gather&) const { return {}; }
  std::optional<Traversal> operator()(const integer::QuantizedConcat&) const { return {}; }
  std::optional<Traversal> operator()(const integer::View&) const { return {}; }
};

/// A piece of the scratch: a value, or a step's own bytes.
struct Piece {
  int64_t bytes = 0;
  int first = 0, last = 0;  ///< the first and the last step that need it
  bool aligned = false;     ///< to 4 bytes, because it holds words
  bool local = false;       ///< a step's own bytes
};

/// Two pieces that may overlap although both are alive in `step`, which reads `before` for the last
/// time and writes `after`. forward and backward are the step's lead() in each order.
struct Pair {
  int before = 0, after = 0;
  int step = 0;
  int64_t forward = 0, backward = 0;
};

class Planner {
 public:
  Planner(std::vector<Piece> pieces, std::vector<Pair> pairs)
      : pieces_(std::move(pieces)),
        offset_(pieces_.size(), 0),
        pair_of_(pieces_.size(), -1),
        pairs_(std::move(pairs)) {
    for (size_t i = 0; i < pairs_.size(); ++i)
      pair_of_[static_cast<size_t>(pairs_[i].after)] = static_cast<int>(i);
  }

  /// Places the pieces in this order. Each goes to the offset where the total grows least; if there
  /// are several, to the lowest. Offsets may be negative. Returns the total number of bytes.
  int64_t place(const std::vector<int>& order) {
    std::vector<int> placed;
    int64_t begin = 0, end = 0;
    for (const int i : order) {
      std::vector<int64_t> candidates = {0};
      for (const int j : placed) {
        if (!together(i, j)) continue;
        candidates.push_back(offset(j) + piece(j).bytes);
        candidates.push_back(offset(j) - piece(i).bytes);
        if (const Pair* p = pair(j, i)) {
          candidates.push_back(offset(j) - p->forward);
          candidates.push_back(offset(j) + p->backward);
        }
        if (const Pair* p = pair(i, j)) {
          candidates.push_back(offset(j) + p->forward);
          candidates.push_back(offset(j) - p->backward);
        }
      }
      const std::vector<Gap> taken = taken_by(i, placed);
      int64_t best = std::numeric_limits<int64_t>::max(), chosen = 0;
      for (int64_t candidate : candidates) {
        candidate = aligned(candidate, i);
        const int64_t size = std::max(end, candidate + piece(i).bytes) - std::min(begin, candidate);
        if (size > best || (size == best && candidate >= chosen)) continue;
        if (!fits(candidate, taken)) continue;
        best = size;
        chosen = candidate;
      }
      offset_[static_cast<size_t>(i)] = chosen;
      begin = std::min(begin, chosen);
      end = std::max(end, chosen + piece(i).bytes);
      placed.push_back(i);
    }
    begin_ = begin;
    return end - begin;
  }

  int64_t offset(int i) const { return offset_[static_cast<size_t>(i)]; }
  /// The lowest offset of any piece.
  int64_t begin() const { return begin_; }
  const std::vector<Pair>& pairs() const { return pairs_; }

 private:
  const Piece& piece(int i) const { return pieces_[static_cast<size_t>(i)]; }
  // The step that writes a piece may overwrite at most one other piece.
  const Pair* pair(int before, int after) const {
    const int i = pair_of_[static_cast<size_t>(after)];
    if (i < 0 || pairs_[static_cast<size_t>(i)].before != before) return nullptr;
    return &pairs_[static_cast<size_t>(i)];
  }
  bool together(int i, int j) const {
    return piece(i).first <= piece(j).last && piece(j).first <= piece(i).last;
  }
  int64_t aligned(int64_t at, int i) const {
    if (!piece(i).aligned) return at;
    return at >= 0 ? (at + 3) / 4 * 4 : -((-at) / 4 * 4);
  }
  /// Offsets that are not free: those between the two numbers.
  struct Gap {
    int64_t after, before;
  };

  /// Where piece i cannot lie because of the placed pieces: ascending, and apart from each other.
  std::vector<Gap> taken_by(int i, const std::vector<int>& placed) const {
    std::vector<Gap> all;
    for (const int j : placed) {
      if (!together(i, j)) continue;
      Gap gap{offset(j) - piece(i).bytes, offset(j) + piece(j).bytes};
      const Pair* const later = pair(j, i);
      const Pair* const earlier = later == nullptr ? pair(i, j) : nullptr;
      if (later != nullptr) {
        gap.after = std::max(gap.after, offset(j) - later->forward);
        gap.before = std::min(gap.before, offset(j) + later->backward);
      } else if (earlier != nullptr) {
        gap.after = std::max(gap.after, offset(j) - earlier->backward);
        gap.before = std::min(gap.before, offset(j) + earlier->forward);
      }
      if (gap.before - gap.after > 1) all.push_back(gap);
    }
    std::sort(all.begin(), all.end(), [](const Gap& a, const Gap& b) { return a.after < b.after; });
    std::vector<Gap> joined;
    for (const Gap& gap : all) {
      if (joined.empty() || gap.after >= joined.back().before) {
        joined.push_back(gap);
      } else {
        joined.back().before = std::max(joined.back().before, gap.before);
      }
    }
    return joined;
  }

  static bool fits(int64_t at, const std::vector<Gap>& taken) {
    const auto next = std::lower_bound(
        taken.begin(), taken.end(), at, [](const Gap& gap, int64_t x) { return gap.after < x; });
    return next == taken.begin() || at >= std::prev(next)->before;
  }

  std::vector<Piece> pieces_;
  std::vector<int64_t> offset_;
  std::vector<int> pair_of_;
  std::vector<Pair> pairs_;
  int64_t begin_ = 0;
};

}  // namespace

int64_t lead(const Operation& op, Order order) {
  const std::optional<Traversal> t = std::visit(Lead{order}, op);
  if (t) return t->first.empty() ? 0 : lead_of(*t, order);
  int64_t bytes = integer::output_size(op);
  for (const int64_t size : integer::input_sizes(op)) bytes += size;
  return bytes;
}

SourceMemory plan_source_memory(const Program& program, const std::vector<int64_t>& local_bytes) {
  const size_t count = program.values.size();
  SourceMemory plan;
  plan.places.resize(count);
  plan.orders.assign(program.steps.size(), Order::kForward);
  plan.locals.assign(program.steps.size(), 0);

  std::vector<int> roots(count, -1), first(count, 0), last(count, -1);
  const auto at = [](auto& v, int id) -> auto& { return v[static_cast<size_t>(id)]; };
  std::vector<char> callers(count, 0);  // 1: in the caller's memory
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const int id = program.inputs[i];
    at(roots, id) = id;
    at(callers, id) = 1;
    at(plan.places, id) = {Place::Where::kInput, static_cast<int64_t>(i)};
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const int now = static_cast<int>(i);
    const bool view = std::holds_alternative<integer::View>(step.operation);
    at(roots, step.output) = view ? at(roots, step.inputs[0]) : step.output;
    if (!view) at(first, step.output) = now;
    at(last, at(roots, step.output)) = now;
    for (const int id : step.inputs) at(last, at(roots, id)) = now;
  }
  // An output's value is written directly to the caller's memory, unless the value is an input,
  // another output or a view of one of these.
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const int root = at(roots, program.outputs[i]);
    if (at(callers, root)) continue;
    at(callers, root) = 1;
    at(plan.places, root) = {Place::Where::kOutput, static_cast<int64_t>(i)};
  }

  std::vector<Piece> pieces;
  std::vector<int> piece_of(count, -1);
  for (size_t id = 0; id < count; ++id) {
    if (roots[id] != static_cast<int>(id) || callers[id]) continue;
    piece_of[id] = static_cast<int>(pieces.size());
    const integer::Value& value = program.values[id];
    pieces.push_back({.bytes = value.shape.elements() * (value.is_codes() ? 1 : 4),
                      .first = first[id],
                      .last = last[id],
                      .aligned = !value.is_codes()});
  }
  std::vector<Pair> pairs;
  std::vector<int> local_piece(program.steps.size(), -1);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const int now = static_cast<int>(i);
    if (local_bytes[i] > 0) {
      local_piece[i] = static_cast<int>(pieces.size());
      pieces.push_back({.bytes = (local_bytes[i] + 3) / 4 * 4,
                        .first = now,
                        .last = now,
                        .aligned = true,
                        .local = true});
    }
    const int output = at(piece_of, at(roots, step.output));
    if (output < 0 || at(roots, step.output) != step.output) continue;
    for (const int id : step.inputs) {
      const int root = at(roots, id);
      const int input = at(piece_of, root);
      // A step that is not elementwise may not overwrite a value that it reads twice: one read may
      // still need codes that the other read has already passed.
      const auto reads = std::count_if(step.inputs.begin(), step.inputs.end(), [&](int other) {
        return at(roots, other) == root;
      });
      const bool elementwise = integer::runs_in_place(step.operation);
      if (input < 0 || at(last, root) != now || (reads > 1 && !elementwise)) continue;
      // The smaller factor of a multiplication is read again for each row, so it must stay.
      if (elementwise &&
          pieces[static_cast<size_t>(input)].bytes != pieces[static_cast<size_t>(output)].bytes) {
        continue;
      }
      pairs.push_back({input,
                       output,
                       now,
                       lead(step.operation, Order::kForward),
                       lead(step.operation, Order::kBackward)});
      break;  // an output overwrites one input at most
    }
  }

  // The scratch's size depends on the order in which pieces are placed. The candidates are orders
  // that usually do well, and random variations of these orders. The variations are the same in
  // every run.
  std::vector<int> order(pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by = [&](auto key) {
    std::vector<int> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
      return key(pieces[static_cast<size_t>(a)]) < key(pieces[static_cast<size_t>(b)]);
    });
    return sorted;
  };
  std::vector<std::vector<int>> orders = {by([](const Piece& p) { return -p.bytes; }),
                                          by([](const Piece& p) { return p.first; }),
                                          by([](const Piece& p) { return -p.first; })};
  std::mt19937 random(1);
  const int tries = pieces.size() > 1000 ? 0 : pieces.size() > 64 ? 20 : 200;
  for (int i = 0; i < tries; ++i) {
    std::vector<int> shuffled = orders[static_cast<size_t>(i % 3)];
    for (size_t swaps = 0; swaps < 1 + shuffled.size() / 4 && shuffled.size() > 1; ++swaps) {
      std::swap(shuffled[random() % shuffled.size()], shuffled[random() % shuffled.size()]);
    }
    orders.push_back(std::move(shuffled));
  }
  Planner planner(pieces, pairs);
  int64_t best = std::numeric_limits<int64_t>::max();
  std::vector<int> chosen;
  for (const std::vector<int>& candidate : orders) {
    const int64_t bytes = planner.place(candidate);
    if (bytes >= best) continue;
    best = bytes;
    chosen = candidate;
  }
  plan.scratch_bytes = pieces.empty() ? 0 : planner.place(chosen);
  // Rounds the lowest offset down to a multiple of 4, so that aligned pieces stay aligned.
  const int64_t base = planner.begin() >= 0 ? 0 : -((-planner.begin() + 3) / 4 * 4);
  plan.scratch_bytes += planner.begin() - base;
  plan.scratch_bytes = (plan.scratch_bytes + 3) / 4 * 4;

  for (size_t id = 0; id < count; ++id) {
    if (piece_of[id] >= 0)
      plan.places[id] = {Place::Where::kScratch, planner.offset(piece_of[id]) - base};
  }
  for (size_t id = 0; id < count; ++id) {
    if (roots[id] >= 0) plan.places[id] = plan.places[static_cast<size_t>(roots[id])];
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (local_piece[i] >= 0) plan.locals[i] = planner.offset(local_piece[i]) - base;
    int64_t alive = 0;
    for (const Piece& piece : pieces) {
      const int now = static_cast<int>(i);
      if (!piece.local && piece.first <= now && now <= piece.last) alive += piece.bytes;
    }
    plan.values.push_back(alive);
  }
  for (const Pair& pair : planner.pairs()) {
    const int64_t before = planner.offset(pair.before), after = planner.offset(pair.after);
    const auto bytes = [&](int i) { return pieces[static_cast<size_t>(i)].bytes; };
    const bool apart = after + bytes(pair.after) <= before || before + bytes(pair.before) <= after;
    if (!apart && after + pair.forward > before)
      plan.orders[static_cast<size_t>(pair.step)] = Order::kBackward;
  }
  return plan;
}

}  // namespace quantrain::c99
