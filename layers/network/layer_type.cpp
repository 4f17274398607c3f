#include "layers/network/layer_type.hpp"

#include <map>
#include <mutex>
#include <typeindex>

#include "framework/core/error.hpp"
#include "layers/layers.hpp"
#include "layers/network/operation.hpp"

namespace quantrain {
namespace {

LayerType type_of(OperationType operation) {
  const auto members = [](const Module& layer) {
    return LayerMembers{static_cast<const Operation&>(layer).attributes(), {}};
  };
  const auto make = [type = operation.type, apply = std::move(operation.apply)](
                        const LayerMembers& all) -> std::shared_ptr<Module> {
    if (!all.state.empty())
      throw DataError(type, "the member \"", all.state[0].name, "\" is unknown");
    return std::make_shared<Operation>(type, all.options, apply);
  };
  return {std::move(operation.type), operation.inputs, members, make};
}

/// All types. Entries are never removed, so pointers to them stay valid.
class Registry {
 public:
  static Registry& get() {
    static Registry registry;
    return registry;
  }

  void add_layer(std::type_index of, LayerType type) {
    const std::lock_guard lock(mutex_);
    const auto known = by_class_.find(of);
    if (known != by_class_.end() && known->second->name == type.name) return;
    if (by_name_.contains(type.name))
      throw GraphError("register_layer", "the name \"", type.name, "\" is taken");
    by_class_[of] = insert(std::move(type));
  }

  void add_operation(OperationType operation) {
    const std::lock_guard lock(mutex_);
    if (by_name_.contains(operation.type))
      throw GraphError("register_operation", "the name \"", operation.type, "\" is taken");
    insert(type_of(std::move(operation)));
  }

  const LayerType* find(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &found->second;
  }

  const LayerType* find(const Module& layer) {
    if (typeid(layer) == typeid(Operation)) return find(layer.type());
    const std::lock_guard lock(mutex_);
    const auto found = by_class_.find(typeid(layer));
    return found == by_class_.end() ? nullptr : found->second;
  }

 private:
  Registry() {
    [&]<class... Layers>(std::tuple<Layers...>*) {
      (add_layer(typeid(Layers), layer_type<Layers>()), ...);
    }(static_cast<LayerTypes*>(nullptr));
    for (OperationType& operation : operation_types()) insert(type_of(std::move(operation)));
  }

  const LayerType* insert(LayerType type) {
    std::string name = type.name;
    return &by_name_.emplace(std::move(name), std::move(type)).first->second;
  }

  std::mutex mutex_;
  std::map<std::string, LayerType, std::less<>> by_name_;
  std::map<std::type_index, const LayerType*> by_class_;
};

}  // namespace

const LayerType* find_layer_type(const Module& layer) { return Registry::get().find(layer); }

const LayerType* find_layer_type(std::string_view name) { return Registry::get().find(name); }

LayerMembers members_of(const Module& layer) {
  const LayerType* const type = find_layer_type(layer);
  if (type == nullptr) {
    throw GraphError(layer.label(),
                     "is of the class ",
                     layer.type(),
                     ", which is not registered: call register_layer<",
                     layer.type(),
                     ">() at the start of the program (layers/network/layer_type.hpp)");
  }
  return type->members(layer);
}

std::shared_ptr<Module> make_layer(std::string_view type, const LayerMembers& members) {
  const LayerType* const known = find_layer_type(type);
  if (known == nullptr) {
    throw GraphError("make_layer",
                     "no layer or operation is named \"",
                     type,
                     "\": a program's own needs register_layer or register_operation first");
  }
  return known->make(members);
}

void register_operation(OperationType operation) {
  if (operation.apply == nullptr)
    throw GraphError("register_operation", '"', operation.type, "\" has no function");
  Registry::get().add_operation(std::move(operation));
}

namespace detail {

void register_layer_type(const std::type_info& of, LayerType type) {
  Registry::get().add_layer(of, std::move(type));
}

}  // namespace detail
}  // namespace quantrain
