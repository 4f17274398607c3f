#include "quant/methods/method.hpp"

#include <algorithm>
#include <ostream>

#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_table.hpp"
#include "layers/state.hpp"

namespace quantrain::quant {
namespace {

/// Restores the state of a network, unless it is kept.
class StateGuard {
 public:
  explicit StateGuard(const Module& net) : now_(state(net)) {
    for (const NamedState& entry : now_) before_.push_back(entry.copy());
  }
  ~StateGuard() {
    if (kept_) return;
    for (size_t i = 0; i < now_.size(); ++i) now_[i].copy_values(before_[i]);
  }
  StateGuard(const StateGuard&) = delete;
  StateGuard& operator=(const StateGuard&) = delete;
  void keep() { kept_ = true; }

 private:
  std::vector<NamedState> now_;
  std::vector<NamedState> before_;
  bool kept_ = false;
};

bool is_calibrated(Module& net) {
  const std::vector<FakeQuantize*> slots = Plugged(net).activations;
  return std::all_of(
      slots.begin(), slots.end(), [](const FakeQuantize* slot) { return slot->is_initialized(); });
}

}  // namespace

Improvement improve(Module& net, const DataLoader& data, const std::vector<Method>& methods) {
  const DefaultRounding rounding;
  if (methods.empty()) {
    throw DataError("improve",
                    "there is no method: pass some of Equalization{}, WeightRanges{}, AdaRound{}, "
                    "BiasCorrection{}");
  }
  if (Plugged(net).empty()) {
    throw GraphError(net.label(),
                     "the network is not prepared: prepare_ptq or prepare_qat comes first");
  }
  StateGuard guard(net);
  if (!is_calibrated(net)) calibrate(net, data);
  MethodRun run{
      .net = net, .data = data, .example = first_inputs(data, "improve"), .float_means = {}};
  run.float_means = channel_means(net, data, products_of(net, run.example), float_pass);
  for (const Method& method : methods) method.apply(run);
  guard.keep();
  return {std::move(run.rows)};
}

std::ostream& operator<<(std::ostream& stream, const Improvement& improvement) {
  TextTable table("lllrr");
  table.add({"method", "layer", "measure", "before", "after"});
  for (const MethodRow& row : improvement.rows) {
    if (row.skipped.empty()) {
      table.add(
          {row.method, row.layer, row.measure, decimals(row.before, 4), decimals(row.after, 4)});
    } else {
      table.add({row.method, row.layer, "unchanged: " + row.skipped});
    }
  }
  return stream << table;
}

}  // namespace quantrain::quant
