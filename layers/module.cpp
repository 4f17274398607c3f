#include "layers/module.hpp"

#include <algorithm>
#include <limits>

#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "framework/core/rounding.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/io/json_writer.hpp"

namespace quantrain {
namespace {

std::string join(const std::string& prefix, std::string_view name) {
  if (prefix.empty()) return std::string(name);
  return name.empty() ? prefix : prefix + '.' + std::string(name);
}

void append_new(std::vector<NamedState>& all,
                const std::string& prefix,
                const std::vector<NamedState>& own) {
  for (const NamedState& entry : own) {
    const bool known = std::any_of(
        all.begin(), all.end(), [&](const NamedState& other) { return other.same_as(entry); });
    if (known) continue;
    all.push_back(entry);
    all.back().name = join(prefix, entry.name);
  }
}

[[noreturn]] void refuse_nesting(std::string_view type) {
  throw GraphError(type,
                   "modules nest deeper than ",
                   Module::kMostNested,
                   " levels; is one of them a part of itself?");
}

// Counts the nested calls of modules in this thread. Paths start at the module of the outermost
// call.
class Running {
 public:
  explicit Running(std::string_view type) {
    if (depth_ >= Module::kMostNested) refuse_nesting(type);
    ++depth_;
  }
  ~Running() { --depth_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  bool is_root() const { return depth_ == 1; }

 private:
  static thread_local int depth_;
};
thread_local int Running::depth_ = 0;

thread_local CallListener* listening = nullptr;

}  // namespace

Preparation::~Preparation() = default;

CallListener::CallListener() : previous_(std::exchange(listening, this)) {}
CallListener::~CallListener() {
  if (listening == this) listening = previous_;
  for (CallListener* inner = listening; inner != nullptr; inner = inner->previous_) {
    if (inner->previous_ == this) inner->previous_ = previous_;
  }
}
CallListener* CallListener::current() { return listening; }

// Destroys the module's parts at all levels in a loop, because nested destructors of a deep network
// would overflow the stack. The parts form a linked list, so the loop allocates nothing.
Module::~Module() {
  std::shared_ptr<Module> parts;
  give_up(parts);
  while (parts != nullptr) {
    const std::shared_ptr<Module> part = std::move(parts);
    parts = std::move(part->next_part_);
    part->give_up(parts);
  }
}

void Module::give_up(std::shared_ptr<Module>& parts) {
  const auto give = [&](std::shared_ptr<Module> part) {
    if (part == nullptr || part.use_count() > 1) return;  // null, or another owner keeps it
    part->next_part_ = std::move(parts);
    parts = std::move(part);
  };
  for (auto& child : children_) give(std::move(child));
  for (auto& slot : slots_.inputs) give(std::move(slot));
  give(std::move(slots_.weight));
  give(std::move(slots_.body));
  give(std::move(slots_.output));
}

void Module::check_nesting(int depth) const {
  if (depth >= kMostNested) refuse_nesting(type());
}

template <class Visit>
void Module::visit_owned(const std::string& prefix, const Visit& visit, int depth) const {
  check_nesting(depth);
  visit(prefix, *this);
  const auto visit_slot = [&](const std::string& name, const Module* module) {
    if (module != nullptr) module->visit_owned(join(prefix, name), visit, depth + 1);
  };
  for (size_t i = 0; i < slots_.inputs.size(); ++i)
    visit_slot(i == 0 ? "input_slot" : "input_slot" + std::to_string(i), slots_.inputs[i].get());
  visit_slot("weight_slot", slots_.weight.get());
  visit_slot("body_slot", slots_.body.get());
  visit_slot("output_slot", slots_.output.get());
  for (const auto& child : children_)
    child->visit_owned(join(prefix, child->name_), visit, depth + 1);
}

template <class Call>
auto Module::run(Call&& call) {
  const Running running(type());
  const DefaultRounding rounding;
  const Scope scope(running.is_root() ? std::string_view() : name_);
  return call();
}

Tensor Module::slotted_input(size_t i, Tensor x) const {
  const bool slotted = i < slots_.inputs.size() && slots_.inputs[i];
  return slotted ? (*slots_.inputs[i])(std::move(x)) : std::move(x);
}

Tensor Module::call(Tensor x) {
  x = slotted_input(0, std::move(x));
  Module* output = slots_.output.get();
  const bool fused =
      slots_.body && output != nullptr && slots_.body->fuse(x, Activation::kNone, output);
  Tensor y = fused         ? std::move(x)
             : slots_.body ? (*slots_.body)(std::move(x))
                           : take_forward(std::move(x));
  return output != nullptr ? (*output)(std::move(y)) : y;
}

Tensor Module::call(Tensor a, Tensor b) {
  Tensor y = take_forward(slotted_input(0, std::move(a)), slotted_input(1, std::move(b)));
  return slots_.output ? (*slots_.output)(std::move(y)) : y;
}

std::vector<Tensor> Module::call(const std::vector<Tensor>& x) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < x.size(); ++i) inputs.push_back(slotted_input(i, x[i]));
  std::vector<Tensor> y = slots_.body && x.size() == 1
                              ? std::vector<Tensor>{(*slots_.body)(std::move(inputs[0]))}
                              : forward(inputs);
  if (y.empty()) throw ShapeError(where(), "gives no output");
  if (slots_.output) y[0] = (*slots_.output)(std::move(y[0]));
  return y;
}

Tensor Module::operator()(Tensor x) {
  return run([&] {
    if (!x.defined()) throw GraphError(where(), "the input is undefined: it has no value");
    CallListener* const listener = CallListener::current();
    if (listener == nullptr) return call(std::move(x));
    listener->enter(*this);
    std::vector<Tensor> y{call(x)};
    listener->leave(*this, {x}, y);
    return y[0];
  });
}

Tensor Module::operator()(Tensor a, Tensor b) {
  return run([&] {
    CallListener* const listener = CallListener::current();
    if (listener == nullptr) return call(std::move(a), std::move(b));
    listener->enter(*this);
    std::vector<Tensor> y{call(a, b)};
    listener->leave(*this, {a, b}, y);
    return y[0];
  });
}

std::vector<Tensor> Module::operator()(const std::vector<Tensor>& x) {
  return run([&] {
    CallListener* const listener = CallListener::current();
    if (listener == nullptr) return call(x);
    listener->enter(*this);
    std::vector<Tensor> y = call(x);
    listener->leave(*this, x, y);
    return y;
  });
}

bool Module::fuse(Tensor& /*x*/, Activation /*activation*/, Module*& /*output*/) { return false; }

Tensor Module::forward(const Tensor& /*x*/) {
  throw ShapeError(type(),
                   "does not take one input: its class overrides no forward(const Tensor& x), so "
                   "pass a list, such as net(batch.inputs()), or override it");
}

Tensor Module::forward(const Tensor& /*a*/, const Tensor& /*b*/) {
  throw ShapeError(type(), "does not take two inputs");
}

std::vector<Tensor> Module::forward(const std::vector<Tensor>& x) {
  if (x.size() == 1) return {take_forward(x[0])};
  if (x.size() == 2) return {take_forward(x[0], x[1])};
  throw ShapeError(type(), "does not take ", x.size(), " inputs");
}

std::vector<NamedState> Module::named_parameters() const {
  std::vector<NamedState> all;
  visit_owned("", [&](const std::string& prefix, const Module& m) {
    append_new(all, prefix, m.parameters_);
  });
  return all;
}

std::vector<NamedState> Module::named_buffers() const {
  std::vector<NamedState> all;
  visit_owned(
      "", [&](const std::string& prefix, const Module& m) { append_new(all, prefix, m.buffers_); });
  return all;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> tensors;
  for (NamedState& entry : named_parameters()) tensors.push_back(std::move(entry.tensor));
  return tensors;
}

void Module::zero_grad() {
  for (Tensor& parameter : parameters()) parameter.zero_grad();
}

std::vector<NamedModule> Module::named_modules() & {
  std::vector<NamedModule> all;
  append_modules("", 0, all);
  return all;
}

void Module::append_modules(const std::string& name, int depth, std::vector<NamedModule>& all) {
  check_nesting(depth);
  all.push_back({name, this});
  for (const auto& child : children_)
    child->append_modules(join(name, child->name_), depth + 1, all);
}

Module& Module::find(std::string_view path) & {
  TextStream known;
  for (const NamedModule& entry : named_modules()) {
    if (entry.name == path) return *entry.module;
    known << ' ' << (entry.name.empty() ? "(root)" : entry.name);
  }
  throw GraphError(type(), "no layer \"", path, "\"; known:", known.str());
}

std::vector<NamedState> Module::pass_state() const {
  std::vector<NamedState> entries;
  for (const NamedState& entry : buffers_) {
    if (!entry.constant) entries.push_back(entry);
  }
  return entries;
}

void Module::join_shards(const ShardStates& shards) {
  const DefaultRounding rounding;
  const std::vector<NamedState> own = pass_state();
  double all = 0.0;
  for (const int64_t samples : shards.samples) all += static_cast<double>(samples);
  for (size_t i = 0; i < own.size(); ++i) {
    if (own[i].holds_integers()) {
      IntegerBuffer integers = own[i].integers;
      std::vector<int64_t> most(integers.values().size(), std::numeric_limits<int64_t>::min());
      for (const std::vector<NamedState>& after : shards.after) {
        for (size_t k = 0; k < most.size(); ++k)
          most[k] = std::max(most[k], after[i].integers.values()[k]);
      }
      integers.set(most);
      continue;
    }
    // Products of a float and a count are exact in double. So equal values stay as they are.
    Tensor tensor = own[i].tensor;
    std::vector<double> sums(static_cast<size_t>(tensor.elements()));
    for (size_t shard = 0; shard < shards.after.size(); ++shard) {
      const auto weight = static_cast<double>(shards.samples[shard]);
      const float* const values = shards.after[shard][i].tensor.data();
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += weight * static_cast<double>(values[k]);
    }
    float* const mean = tensor.mutable_data();
    for (size_t k = 0; k < sums.size(); ++k) mean[k] = static_cast<float>(sums[k] / all);
  }
}

void Module::train(bool training) { set_training(training, 0); }

/// Calls visit for each slot that is filled, then for each child.
template <class Visit>
void Module::for_parts(const Visit& visit) const {
  for (const auto& slot : slots_.inputs) {
    if (slot) visit(*slot);
  }
  for (Module* slot :
       {static_cast<Module*>(slots_.weight.get()), slots_.body.get(), slots_.output.get()}) {
    if (slot != nullptr) visit(*slot);
  }
  for (const auto& child : children_) visit(*child);
}

void Module::set_training(bool training, int depth) {
  check_nesting(depth);
  const bool changes = training_ != training;  // if not, other threads may run the module
  if (changes) training_ = training;
  for_parts([&](Module& part) { part.set_training(training, depth + 1); });
  if (changes) on_train(training);
}

void Module::set_own_mode(bool training) {
  if (training_ == training) return;
  training_ = training;
  on_train(training);
}

void Module::append_modes(int depth, std::vector<std::pair<Module*, bool>>& modes) {
  check_nesting(depth);
  modes.emplace_back(this, training_);
  for_parts([&](Module& part) { part.append_modes(depth + 1, modes); });
}

void Module::train_like(const Module& other) {
  std::vector<bool> wanted;
  other.visit_owned("",
                    [&](const std::string&, const Module& m) { wanted.push_back(m.training_); });
  std::vector<std::pair<Module*, bool>> own;
  append_modes(0, own);
  if (own.size() != wanted.size())
    throw GraphError(type(),
                     "has ",
                     own.size(),
                     " modules with those in slots, but the other network has ",
                     wanted.size());
  // Parents come before children, because train() of a parent also sets the mode of its parts.
  for (size_t i = 0; i < own.size(); ++i) own[i].first->train(wanted[i]);
}

std::string Module::where() const {
  const std::string& path = Scope::path();
  return path.empty() ? std::string(type()) : std::string(type()) + ' ' + path;
}

void Module::check_name(std::string_view where, const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw GraphError(where, "a child's name is empty or has a dot: \"", name, "\"");
  if (!is_utf8(name))
    throw GraphError(where, "a child's name is not UTF-8, which files require: \"", name, "\"");
}

void Module::add_child(std::string name, std::shared_ptr<Module> child) {
  check_name(type(), name);
  if (child == nullptr) throw GraphError(type(), "the child \"", name, "\" is null");
  for (const auto& other : children_) {
    if (other->name_ == name) throw GraphError(type(), "two children are named \"", name, "\"");
  }
  child->name_ = std::move(name);
  // Each parameter gets its path as its name, for messages of optimizers and dumps of graphs.
  for (NamedState& entry : child->named_parameters())
    entry.tensor.set_name(join(child->name_, entry.name));
  children_.push_back(std::move(child));
}

Tensor Module::add_parameter(std::string name, Tensor tensor) {
  tensor.set_requires_grad(true).set_name(name);
  parameters_.push_back({std::move(name), tensor});
  return tensor;
}

Tensor Module::add_buffer(std::string name, Tensor tensor) {
  add_buffer(NamedState(std::move(name), tensor));
  return tensor;
}

IntegerBuffer Module::add_buffer(std::string name, IntegerBuffer integers) {
  add_buffer(NamedState(std::move(name), integers));
  return integers;
}

void Module::add_buffer(NamedState entry) {
  if (entry.tensor.defined()) entry.tensor.set_name(entry.name);
  buffers_.push_back(std::move(entry));
}

}  // namespace quantrain
