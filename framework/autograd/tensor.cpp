#include "framework/autograd/tensor.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "framework/autograd/node.hpp"
#include "framework/autograd/tensor_access.hpp"
#include "framework/core/error.hpp"
#include "framework/kernels/float/elementwise.hpp"

namespace quantrain {

struct Tensor::State {
  /// Whether source codes have been dequantized.
  struct Decoding {
    std::atomic<bool> done = false;
    std::mutex mutex;  // of the thread that stores the floats
  };

  Shape shape;
  ValueKind kind = ValueKind::kFloat;
  // kFloat: the value, empty until decode() computes it; other kinds: null until the floats are
  // computed on demand, and only used through computed() and publish().
  std::shared_ptr<Buffer<float>> floats;
  // kCodes: the value; kFloat: source codes, valid while *version is source_version.
  std::shared_ptr<const Codes> codes;
  std::shared_ptr<const WaitingResult> waiting;
  Activation activation = Activation::kNone;  // of the waiting result
  std::shared_ptr<uint64_t> version;          // of the floats; tensors that share floats share it
  uint64_t source_version = 0;
  std::shared_ptr<Decoding> decoding;  // made by decoded(); tensors that share floats share it
  bool requires_grad = false;
  Tensor grad;
  std::shared_ptr<Node> node;
  std::string name;
  TensorAccess::Companions companions;
  TensorAccess::Least least;
  std::shared_ptr<const Rescaling> rescaling;

  /// Floats computed from the codes, or from the waiting result and the activation.
  std::shared_ptr<Buffer<float>> materialise() const;
  /// The floats of other kinds than kFloat; null if there are none yet. For readers in any thread.
  std::shared_ptr<Buffer<float>> computed() const;
  /// Keeps these floats, unless another thread was faster. Returns those that are kept.
  std::shared_ptr<Buffer<float>> publish(std::shared_ptr<Buffer<float>> made);
  /// Computes the floats of a tensor from decoded(). Every reader calls it first, in any thread.
  void decode();
};

namespace {

std::shared_ptr<Buffer<float>> make_floats(int64_t elements) {
  return std::make_shared<Buffer<float>>(elements);
}

GraphError value_was_freed() {
  return GraphError("tensor",
                    "the value was freed, because no gradient needs it, or a later layer took its "
                    "memory: to keep it, run the operations while a Recording lives");
}

void apply(Activation activation, int64_t n, float* x) {
  if (activation == Activation::kNone) return;
  kernels::relu_f32(n, x, upper_bound(activation), x, nullptr);
}

}  // namespace

std::shared_ptr<Buffer<float>> Tensor::State::materialise() const {
  const bool there =
      kind == ValueKind::kCodes ? codes->bytes.size() == shape.elements() : waiting != nullptr;
  if (!there) throw value_was_freed();
  auto buffer = make_floats(shape.elements());
  if (kind == ValueKind::kCodes) {
    codes->to_float(shape, buffer->data());
  } else {
    waiting->to_float(buffer->data());
    apply(activation, buffer->size(), buffer->data());
  }
  return buffer;
}

// One lock for all tensors: it is held for the copy of a pointer.
namespace {
std::mutex computed_mutex;
}

std::shared_ptr<Buffer<float>> Tensor::State::computed() const {
  const std::lock_guard lock(computed_mutex);
  return floats;
}

std::shared_ptr<Buffer<float>> Tensor::State::publish(std::shared_ptr<Buffer<float>> made) {
  const std::lock_guard lock(computed_mutex);
  if (floats == nullptr) floats = std::move(made);
  return floats;
}

void Tensor::State::decode() {
  if (decoding == nullptr || decoding->done.load(std::memory_order_acquire)) return;
  // Without the lock, because a thread may read x again in a task while it waits for this loop.
  Buffer<float> values(shape.elements());
  codes->decode(values.data());
  const std::lock_guard lock(decoding->mutex);
  if (decoding->done.load(std::memory_order_relaxed)) return;
  *floats = std::move(values);
  decoding->done.store(true, std::memory_order_release);
}

Tensor::State& Tensor::state() const {
  if (state_ == nullptr) throw GraphError("tensor", "the tensor is undefined");
  return *state_;
}

Tensor Tensor::empty(const Shape& shape) {
  Tensor tensor(std::make_shared<State>());
  tensor.state_->shape = shape;
  tensor.state_->floats = make_floats(shape.elements());
  tensor.state_->version = std::make_shared<uint64_t>(0);
  return tensor;
}

Tensor Tensor::zeros(const Shape& shape) { return full(shape, 0.0f); }

Tensor Tensor::full(const Shape& shape, float value) {
  Tensor tensor = empty(shape);
  std::fill_n(tensor.state_->floats->data(), shape.elements(), value);
  return tensor;
}

Tensor Tensor::from(const Shape& shape, std::span<const float> values) {
  if (static_cast<int64_t>(values.size()) != shape.elements()) {
    throw ShapeError("tensor", values.size(), " values do not fill shape ", shape);
  }
  Tensor tensor = empty(shape);
  std::copy(values.begin(), values.end(), tensor.state_->floats->data());
  return tensor;
}

Tensor Tensor::from_codes(const Shape& shape, std::shared_ptr<const Codes> codes) {
  if (codes == nullptr || codes->bytes.size() != shape.elements()) {
    throw ShapeError(
        "tensor", codes == nullptr ? 0 : codes->bytes.size(), " codes do not fill shape ", shape);
  }
  const QParams& params = codes->params;
  // Weights of a layer without outputs have no channels.
  if (!params.per_channel() || shape[params.axis] > 0) validate(params, "tensor");
  if (params.per_channel() && std::ssize(params.scale) != shape[params.axis])
    throw ShapeError("tensor",
                     "parameters of ",
                     params.scale.size(),
                     " channels for axis ",
                     params.axis,
                     " of ",
                     shape);
  Tensor tensor(std::make_shared<State>());
  tensor.state_->shape = shape;
  tensor.state_->kind = ValueKind::kCodes;
  tensor.state_->codes = std::move(codes);
  return tensor;
}

Tensor Tensor::decoded(const Shape& shape, std::shared_ptr<const Codes> codes) {
  Tensor tensor = from_codes(shape, std::move(codes));
  State& s = *tensor.state_;
  if (s.codes->features != nullptr)
    validate(*s.codes->features, shape.rank() == 0 ? 1 : shape.back(), "tensor");
  if (s.codes->storage != CodeStorage::kU8 || s.codes->params.per_channel())
    throw QuantError("tensor",
                     "codes ",
                     s.codes->params,
                     " are not an input's codes, which are u8 with one scale");
  s.kind = ValueKind::kFloat;
  s.floats = std::make_shared<Buffer<float>>();
  s.version = std::make_shared<uint64_t>(0);
  s.decoding = std::make_shared<State::Decoding>();
  return tensor;
}

const Shape& Tensor::shape() const& { return state().shape; }
Shape Tensor::shape() const&& { return state().shape; }

ValueKind Tensor::kind() const { return state().kind; }

Floats Tensor::floats() const {
  State& s = state();
  s.decode();
  const bool is_float = s.kind == ValueKind::kFloat;
  std::shared_ptr<Buffer<float>> floats = is_float ? s.floats : s.computed();
  return Floats(floats != nullptr ? std::move(floats) : s.materialise());
}

const float* Tensor::data() const& {
  State& s = state();
  s.decode();
  if (s.kind == ValueKind::kFloat) {
    if (s.floats == nullptr) throw value_was_freed();
    return s.floats->data();
  }
  const std::shared_ptr<Buffer<float>> floats = s.computed();
  return (floats != nullptr ? floats : s.publish(s.materialise()))->data();
}

float* Tensor::mutable_data() & {
  State& s = state();
  if (s.kind != ValueKind::kFloat)
    throw GraphError("tensor", "codes and waiting results cannot be written");
  if (s.floats == nullptr) throw value_was_freed();
  s.decode();
  ++*s.version;
  return s.floats->data();
}

float Tensor::item() const {
  if (elements() != 1)
    throw ShapeError("tensor", "item() needs a single element, got shape ", shape());
  return floats()[0];
}

const std::shared_ptr<const Codes>& Tensor::codes() const& {
  if (kind() != ValueKind::kCodes) throw GraphError("tensor", "the tensor does not hold codes");
  if (state().codes->bytes.size() != elements()) throw value_was_freed();
  return state().codes;
}

std::shared_ptr<const Codes> Tensor::source_codes() const {
  const State& s = state();
  const bool valid = s.kind == ValueKind::kFloat && s.codes != nullptr && s.floats != nullptr &&
                     *s.version == s.source_version;
  return valid ? s.codes : nullptr;
}

uint64_t Tensor::version() const {
  const State& s = state();
  return s.version == nullptr ? 0 : *s.version;
}

bool Tensor::requires_grad() const { return state().requires_grad; }

Tensor& Tensor::set_requires_grad(bool requires_grad) & {
  if (node() != nullptr)
    throw GraphError("tensor",
                     "requires_grad of a recorded result follows from the operation's inputs and "
                     "cannot be set: set it on a leaf, or use detach()");
  state().requires_grad = requires_grad;
  return *this;
}

Tensor Tensor::grad() const { return state().grad; }

void Tensor::set_grad(Tensor grad) {
  if (grad.defined() && !(grad.shape() == shape()))
    throw ShapeError(
        "tensor", "a gradient of shape ", grad.shape(), " does not fit shape ", shape());
  state().grad = std::move(grad);
}

Tensor Tensor::detach() const {
  State& s = state();
  auto copy = std::make_shared<State>();
  copy->shape = s.shape;
  copy->kind = s.kind;
  copy->floats = s.kind == ValueKind::kFloat ? s.floats : s.computed();
  copy->codes = s.codes;
  copy->waiting = s.waiting;
  copy->activation = s.activation;
  copy->version = s.version;
  copy->source_version = s.source_version;
  copy->decoding = s.decoding;
  return Tensor(std::move(copy));
}

const std::string& Tensor::name() const& { return state().name; }

Tensor& Tensor::set_name(std::string name) & {
  state().name = std::move(name);
  return *this;
}

const std::shared_ptr<Node>& Tensor::node() const& { return state().node; }

Tensor TensorAccess::from_waiting(const Shape& shape,
                                  std::shared_ptr<const WaitingResult> waiting,
                                  Activation activation) {
  Tensor tensor(std::make_shared<Tensor::State>());
  tensor.state_->shape = shape;
  tensor.state_->kind = ValueKind::kWaiting;
  tensor.state_->waiting = std::move(waiting);
  tensor.state_->activation = activation;
  return tensor;
}

std::shared_ptr<Buffer<float>> TensorAccess::buffer(const Tensor& x) {
  Tensor::State& s = x.state();
  if (s.kind != ValueKind::kFloat) throw GraphError("tensor", "the tensor does not hold floats");
  if (s.floats == nullptr) throw value_was_freed();
  s.decode();
  if (x.source_codes() != nullptr) ++*s.version;
  return s.floats;
}

const QParams& TensorAccess::code_params(const Tensor& x) {
  if (x.kind() != ValueKind::kCodes) throw GraphError("tensor", "the tensor does not hold codes");
  return x.state().codes->params;
}

const std::shared_ptr<const WaitingResult>& TensorAccess::waiting(const Tensor& x) {
  if (x.kind() != ValueKind::kWaiting)
    throw GraphError("tensor", "the tensor does not hold a waiting result");
  if (x.state().waiting == nullptr) throw value_was_freed();
  return x.state().waiting;
}

Tensor TensorAccess::take_sums(const Tensor& x) {
  if (handles(x) != 1 || waiting(x).use_count() != 1) return Tensor();
  Tensor::State& s = x.state();
  const auto sums = std::const_pointer_cast<WaitingResult>(std::exchange(s.waiting, nullptr));
  Tensor y(std::make_shared<Tensor::State>());
  y.state_->shape = s.shape;
  y.state_->floats = std::make_shared<Buffer<float>>(sums->take_sums());
  y.state_->version = std::make_shared<uint64_t>(0);
  if (y.state_->floats->size() != s.shape.elements())
    throw GraphError("tensor", "the waiting result gave up ", y.state_->floats->size(), " sums");
  return y;
}

Activation TensorAccess::activation(const Tensor& x) { return x.state().activation; }

Tensor TensorAccess::as_floats(const Tensor& x) {
  if (x.kind() == ValueKind::kFloat) return x.detach();
  auto copy = std::make_shared<Tensor::State>();
  copy->shape = x.shape();
  copy->floats = x.state().materialise();  // not x's cached floats, which must not change
  copy->version = std::make_shared<uint64_t>(0);
  return Tensor(std::move(copy));
}

bool TensorAccess::is_sole(const Tensor& x) {
  return handles(x) == 1 && x.kind() == ValueKind::kFloat && x.state().floats.use_count() == 1;
}

Tensor TensorAccess::overwritable(const Tensor& x) {
  return is_sole(x) && x.node() == nullptr ? x : Tensor::empty(x.shape());
}

Tensor TensorAccess::take_floats(const Tensor& x) {
  Tensor::State& s = x.state();
  s.decode();
  s.decoding = nullptr;
  Tensor y(std::make_shared<Tensor::State>());
  y.state_->shape = s.shape;
  y.state_->floats = std::exchange(s.floats, nullptr);
  y.state_->version = std::make_shared<uint64_t>(0);
  return y;
}

Tensor TensorAccess::without_value(const Tensor& x) {
  const Tensor::State& s = x.state();
  auto copy = std::make_shared<Tensor::State>();
  copy->shape = s.shape;
  copy->kind = s.kind;
  if (s.kind == ValueKind::kCodes) {
    copy->codes = std::make_shared<Codes>(Codes{{}, s.codes->storage, s.codes->params});
  }
  copy->activation = s.activation;
  copy->version = s.version;
  copy->requires_grad = s.requires_grad;
  copy->node = s.node;
  copy->name = s.name;
  return Tensor(std::move(copy));
}

Tensor TensorAccess::with_shape(const Tensor& x, const Shape& shape) {
  if (shape.elements() != x.elements()) {
    throw ShapeError(
        "reshape", "shapes ", x.shape(), " and ", shape, " have different numbers of elements");
  }
  Tensor result = x.detach();
  if (result.kind() == ValueKind::kCodes && result.codes()->params.per_channel()) {
    result.state_->floats = result.state_->materialise();  // the parameters' axis no longer exists
    result.state_->kind = ValueKind::kFloat;
    result.state_->version = std::make_shared<uint64_t>(0);
    result.state_->codes = nullptr;
  }
  const std::shared_ptr<const Codes> source = result.source_codes();
  if (source != nullptr && source->features != nullptr &&
      (shape.rank() == 0 || shape.back() != source->features->size())) {
    result.state_->decode();
    result.state_->codes = nullptr;  // the last index no longer identifies the feature
  }
  result.state_->shape = shape;
  return result;
}

Tensor TensorAccess::with_activation(const Tensor& x, Activation activation) {
  return from_waiting(x.shape(), waiting(x), activation);
}

void TensorAccess::set_node(Tensor& x, std::shared_ptr<Node> node, bool requires_grad) {
  Tensor::State& s = x.state();
  s.node = std::move(node);
  s.requires_grad = requires_grad;
}

const TensorAccess::Companions& TensorAccess::companions(const Tensor& x) {
  return x.state().companions;
}

void TensorAccess::set_companions(Tensor& x, Companions companions) {
  x.state().companions = std::move(companions);
}

const TensorAccess::Least& TensorAccess::least(const Tensor& x) { return x.state().least; }

void TensorAccess::set_least(const Tensor& x, Least least) { x.state().least = std::move(least); }

const std::shared_ptr<const Rescaling>& TensorAccess::rescaling(const Tensor& x) {
  return x.state().rescaling;
}

void TensorAccess::set_rescaling(Tensor& x, std::shared_ptr<const Rescaling> rescaling) {
  x.state().rescaling = std::move(rescaling);
}

}  // namespace quantrain
