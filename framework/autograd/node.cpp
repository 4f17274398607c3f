#include "framework/autograd/node.hpp"

#include <algorithm>
#include <atomic>
#include <ostream>

#include "framework/autograd/profile.hpp"
#include "framework/core/error.hpp"

namespace quantrain {
namespace {

// Numbers of living scopes, so that scopes may end in any order.
thread_local int no_grads = 0;
thread_local int recordings = 0;
thread_local std::string scope_path;

uint64_t next_sequence() {
  static std::atomic<uint64_t> sequence{0};
  return ++sequence;
}

template <class T>
const T& as(const Attribute& attribute, std::string_view name) {
  if (const T* value = std::get_if<T>(&attribute)) return *value;
  throw GraphError("node", "attribute ", name, " has another type");
}

template <class T>
void print(std::ostream& stream, const T& value) {
  stream << value;
}

void print(std::ostream& stream, const std::vector<int64_t>& list) {
  stream << '[';
  for (size_t i = 0; i < list.size(); ++i) stream << (i > 0 ? ", " : "") << list[i];
  stream << ']';
}

}  // namespace

const Attribute& Attributes::find(std::string_view name) const {
  for (const auto& [key, value] : entries_) {
    if (key == name) return value;
  }
  throw GraphError("node", "no attribute ", name);
}

void Attributes::add(std::string name, Attribute value) {
  entries_.emplace_back(std::move(name), std::move(value));
}

int64_t Attributes::integer(std::string_view name) const { return as<int64_t>(find(name), name); }
double Attributes::real(std::string_view name) const { return as<double>(find(name), name); }
const std::string& Attributes::string(std::string_view name) const& {
  return as<std::string>(find(name), name);
}
const std::vector<int64_t>& Attributes::integers(std::string_view name) const& {
  return as<std::vector<int64_t>>(find(name), name);
}

std::ostream& operator<<(std::ostream& stream, const Attributes& attributes) {
  const char* separator = "";
  for (const auto& [name, value] : attributes) {
    stream << separator << name << '=';
    separator = " ";
    std::visit([&](const auto& v) { print(stream, v); }, value);
  }
  return stream;
}

Node::Node() : sequence_(next_sequence()) {}

// Frees a chain of nodes in a loop, because recursion could overflow the stack on a deep graph. The
// loop allocates nothing.
Node::~Node() {
  thread_local std::forward_list<std::vector<Tensor>>* pending = nullptr;
  if (pending != nullptr) {
    pending->splice_after(pending->before_begin(), inputs_);
    return;
  }
  pending = &inputs_;
  while (!inputs_.empty()) {
    std::vector<Tensor>& tensors = inputs_.front();
    if (tensors.empty()) {
      inputs_.pop_front();
    } else {
      const Tensor last = std::move(tensors.back());
      tensors.pop_back();
    }
  }
  pending = nullptr;
}

void Node::refuse_integers(const std::string& layer) const {
  throw GraphError(layer, "operation ", type(), " has no integer form");
}

NoGrad::NoGrad() { ++no_grads; }
NoGrad::~NoGrad() { --no_grads; }

Recording::Recording() { ++recordings; }
Recording::~Recording() { --recordings; }

Scope::Scope(std::string_view name) : previous_length_(scope_path.size()) {
  if (!scope_path.empty() && !name.empty()) scope_path += '.';
  scope_path += name;
}
// A scope that ends after the one around it finds a shorter path.
Scope::~Scope() { scope_path.resize(std::min(previous_length_, scope_path.size())); }
const std::string& Scope::path() { return scope_path; }

bool needs_gradient(const std::vector<Tensor>& inputs) {
  if (no_grads > 0) return false;
  for (const Tensor& input : inputs) {
    if (input.defined() && input.requires_grad()) return true;
  }
  return false;
}

bool keeps_values() { return recordings > 0; }

bool should_record(const std::vector<Tensor>& inputs) {
  return recordings > 0 || needs_gradient(inputs);
}

void Node::refuse_released() const {
  throw GraphError(type(),
                   "a backward pass has freed this node's inputs; backward(true) keeps them");
}

void refuse_own_result(const Node& node) {
  throw GraphError(node.type(), "the node holds its own result y: give it y.detach() instead");
}

void attach(Tensor& y, std::shared_ptr<Node> node, std::vector<Tensor> inputs) {
  const bool requires_grad = needs_gradient(inputs);
  node->uses_.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    node->uses_.push_back(input.defined() ? Node::Use{input.version(), input.requires_grad()}
                                          : Node::Use{0, false});
  }
  node->inputs_.front() = std::move(inputs);
  if (recordings == 0) {
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      Tensor& input = node->inputs_.front()[i];
      if (input.defined() && input.node() != nullptr && !node->reads_input(i))
        input = TensorAccess::without_value(input);
    }
  }
  node->scope_ = scope_path;
  node->result_version_ = y.version();
  Profile::mark(node->type());
  TensorAccess::set_node(y, std::move(node), requires_grad);
}

}  // namespace quantrain
