#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/autograd/named_state.hpp"
#include "framework/autograd/node.hpp"
#include "framework/core/window.hpp"

// A layer as data. Each layer states its members once, in a list that everything reads: files,
// printing, copies, import and export. The list is the function `describe` of its type Members:
//
//   class Scale : public Module {
//    public:
//     static constexpr std::string_view kType = "Scale";
//     struct Members {
//       float power = 1.0f;
//       Tensor weight;
//       static void describe(auto& m, auto& member) {
//         member("power", m.power);
//         member("weight", m.weight);  // under the name that add_parameter() gets
//       }
//     };
//     static Scale from(const Members& members);  // checks them, as every constructor does
//     Members members() const { return {power_, weight_}; }
//
// A layer that is made without arguments has `using Members = NoMembers` and neither function. A
// layer that takes another number of inputs than one says so in kInputs.
namespace quantrain {

/// How many inputs a layer takes.
struct InputCount {
  int64_t least = 1;
  int64_t most = 1;
  static constexpr InputCount any() { return {1, std::numeric_limits<int64_t>::max()}; }
};

/// A layer without options and parameters.
struct NoMembers {
  static void describe(auto& /*members*/, auto& /*member*/) {}
};

/// The members of any layer. The handles share the tensors with the layer.
struct LayerMembers {
  Attributes options{};
  std::vector<NamedState> state{};  ///< parameters and buffers, by their names in the layer
};

/// Lists the members that a describe() names.
class MemberWriter {
 public:
  explicit MemberWriter(LayerMembers& members) : members_(members) {}

  void operator()(const char* name, int64_t value) { members_.options.add(name, value); }
  void operator()(const char* name, int value) { (*this)(name, int64_t{value}); }
  void operator()(const char* name, bool value) { (*this)(name, int64_t{value}); }
  void operator()(const char* name, float value) { members_.options.add(name, double{value}); }
  void operator()(const char* name, const std::string& value) { members_.options.add(name, value); }
  void operator()(const char* name, const Size2d& value);
  void operator()(const char* name, const std::vector<int64_t>& value);
  void operator()(const char* name, const std::vector<int>& value);
  /// Leaves out a member that has no value.
  void operator()(const char* name, const std::optional<int64_t>& value);
  void operator()(const char* name, const Tensor& value);
  void operator()(const char* name, const IntegerBuffer& value);
  /// Leaves out the usual value. A member that a layer gets later is listed so, and what was saved
  /// before remains readable.
  template <class T>
  void optional(const char* name, const T& value, const std::type_identity_t<T>& usual) {
    if (!(value == usual)) (*this)(name, value);
  }

 private:
  LayerMembers& members_;
};

/// Sets the members that a describe() names: the inverse of MemberWriter.
/// Throws: DataError naming the layer's type and the member, if an option is missing, has another
/// type, or is out of its type's range. A tensor that is not listed stays undefined.
class MemberReader {
 public:
  MemberReader(std::string_view type, const LayerMembers& members)
      : type_(type), members_(members) {}

  void operator()(const char* name, int64_t& value);
  void operator()(const char* name, int& value);
  void operator()(const char* name, bool& value);
  void operator()(const char* name, float& value);
  void operator()(const char* name, std::string& value);
  void operator()(const char* name, Size2d& value);
  void operator()(const char* name, std::vector<int64_t>& value);
  void operator()(const char* name, std::vector<int>& value);
  void operator()(const char* name, std::optional<int64_t>& value);
  void operator()(const char* name, Tensor& value);
  void operator()(const char* name, IntegerBuffer& value);
  template <class T>
  void optional(const char* name, T& value, const std::type_identity_t<T>& usual) {
    if (find(name) == nullptr)
      value = usual;
    else
      (*this)(name, value);
  }
  /// Throws: DataError if a member was not asked for.
  void finish() const;

 private:
  const Attribute* find(const char* name);
  const NamedState* find_state(const char* name);
  template <class T>
  const T& get(const char* name, const char* expected);
  int64_t integer(const char* name, int64_t lo, int64_t hi);
  [[noreturn]] void refuse(const char* name, const char* expected) const;

  std::string type_;
  const LayerMembers& members_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace quantrain
