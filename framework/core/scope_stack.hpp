#pragma once

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace quantrain {

/// What a scope changed, with the values to restore. Scopes may end in any order: if a scope that
/// began later still lives and changed the same target, that scope will restore the value.
/// Target: compares with ==. Scopes of one kind share a ScopeStack<Target, Value, Kind>.
template <class Target, class Value, class Kind>
class ScopeStack {
 public:
  ScopeStack() {
    const std::lock_guard lock(mutex_);
    living_.push_back(this);
  }
  ~ScopeStack() {
    const std::lock_guard lock(mutex_);
    std::erase(living_, this);
  }
  ScopeStack(const ScopeStack&) = delete;
  ScopeStack& operator=(const ScopeStack&) = delete;

  // Locked, because a scope that ends in another thread looks into all later ones.
  void reserve(size_t n) {
    const std::lock_guard lock(mutex_);
    kept_.reserve(n);
  }
  /// If a target is kept twice, the first value counts.
  void keep(Target target, Value value) {
    const std::lock_guard lock(mutex_);
    kept_.emplace_back(std::move(target), std::move(value));
  }
  const std::vector<std::pair<Target, Value>>& kept() const& { return kept_; }

  /// Ends the scope. Calls restore(target, value, later) for each target, the last one first.
  /// later: the value that the next scope with this target keeps, to be replaced; null if there is
  /// none, and the target itself is to be restored.
  template <class Restore>
  void end(const Restore& restore) {
    const std::lock_guard lock(mutex_);
    const auto next = std::find(living_.begin(), living_.end(), this) + 1;
    for (auto entry = kept_.rbegin(); entry != kept_.rend(); ++entry) {
      Value* later = nullptr;
      for (auto scope = next; scope != living_.end() && later == nullptr; ++scope)
        later = (*scope)->find(entry->first);
      restore(entry->first, entry->second, later);
    }
    kept_.clear();
  }

 private:
  Value* find(const Target& target) {
    for (auto& [own, value] : kept_) {
      if (own == target) return &value;
    }
    return nullptr;
  }

  static inline std::mutex mutex_;
  static inline std::vector<ScopeStack*> living_;  // in the order of their beginning

  std::vector<std::pair<Target, Value>> kept_;
};

}  // namespace quantrain
