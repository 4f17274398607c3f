#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "layers/module.hpp"

// Layers by the names of their types. Every layer of layers/layers.hpp is known; a program may
// register its own.
namespace quantrain {

/// What a layer states about itself: see layers/members.hpp.
template <class L>
concept DescribedLayer = std::derived_from<L, Module> && requires(const L& layer,
                                                                  typename L::Members members,
                                                                  MemberWriter& writer,
                                                                  MemberReader& reader) {
  { L::kType } -> std::convertible_to<std::string_view>;
  { L::kInputs } -> std::convertible_to<InputCount>;
  { L::Members::describe(members, writer) } -> std::same_as<void>;
  { L::Members::describe(members, reader) } -> std::same_as<void>;
  requires(std::same_as<typename L::Members, NoMembers> && std::default_initializable<L>) ||
      requires {
    { L::from(members) } -> std::same_as<L>;
    { layer.members() } -> std::convertible_to<typename L::Members>;
  };
};

struct LayerType {
  std::string name;
  InputCount inputs;
  std::function<LayerMembers(const Module& layer)> members;
  std::function<std::shared_ptr<Module>(const LayerMembers& members)> make;
};

template <DescribedLayer L>
LayerType layer_type() {
  using Members = typename L::Members;
  constexpr bool kHasMembers = !std::is_same_v<Members, NoMembers>;
  const auto list = [](const Module& layer) {
    LayerMembers all;
    MemberWriter writer(all);
    if constexpr (kHasMembers) {
      const Members members = static_cast<const L&>(layer).members();
      Members::describe(members, writer);
    }
    return all;
  };
  const auto make = [](const LayerMembers& all) -> std::shared_ptr<Module> {
    Members members;
    MemberReader reader(L::kType, all);
    Members::describe(members, reader);
    reader.finish();
    if constexpr (kHasMembers) {
      return std::make_shared<L>(L::from(members));
    } else {
      return std::make_shared<L>();
    }
  };
  return {std::string(L::kType), L::kInputs, list, make};
}

/// Makes a program's own layer known by L::kType, so that trace() keeps it and files can hold it.
/// Register it before a file with it is loaded; registering it again has no effect.
/// Throws: GraphError if another layer or operation has this name.
template <DescribedLayer L>
void register_layer();

/// The type of a layer; null if its class is not registered, also if it derives from one that is.
const LayerType* find_layer_type(const Module& layer);
/// The type of this name; null if none has it.
const LayerType* find_layer_type(std::string_view name);

/// A layer as data. The tensors are the layer's own.
/// Throws: GraphError naming the layer's type if it is not registered.
LayerMembers members_of(const Module& layer);
/// A new layer with these members: make_layer("Conv2d", ...), or make_layer("sub", {}) for an
/// operation. It holds the given tensors, so layers can share parameters.
/// Throws: GraphError if no type has this name; DataError if a member is missing, unknown, or not a
/// value that the layer takes; ShapeError if the tensors do not fit.
std::shared_ptr<Module> make_layer(std::string_view type, const LayerMembers& members);

namespace detail {
void register_layer_type(const std::type_info& of, LayerType type);
}  // namespace detail

template <DescribedLayer L>
void register_layer() {
  detail::register_layer_type(typeid(L), layer_type<L>());
}

}  // namespace quantrain
