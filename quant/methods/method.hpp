#pragma once

#include <concepts>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/data/loader.hpp"
#include "layers/module.hpp"
#include "quant/methods/products.hpp"

namespace quantrain::quant {

/// What a method did to one layer.
struct MethodRow {
  std::string method;
  std::string layer;
  std::string measure{};  ///< what `before` and `after` are, such as "rmse of the output"
  double before = 0.0;
  double after = 0.0;
  std::string skipped{};  ///< why the layer stayed as it was; then there are no numbers
};

/// A prepared and calibrated network that methods improve, one after the other.
struct MethodRun {
  Module& net;
  const DataLoader& data;
  std::vector<Tensor> example;  ///< inputs of the first batch
  /// Of the float network, before the first method changed its weights. A method that changes the
  /// float network's values, such as a factor that moves between layers, changes these as well.
  ChannelMeans float_means;
  std::vector<MethodRow> rows{};
};

/// A method after training: changes the parameters of a prepared network, and the parameters that
/// its slots were given, so that the quantized network comes closer to the float network. A struct
/// of options is a method if it has a name and does it:
///   struct Mine {
///     static constexpr std::string_view kName = "mine";
///     void apply(MethodRun& run) const;  // adds a row for each layer that it looked at
///   };
/// It changes only what is part of the state (layers/state.hpp), so files and copies keep it.
class Method {
 public:
  template <class M>
  requires requires(const M& method, MethodRun& run) {
    { M::kName } -> std::convertible_to<std::string_view>;
    method.apply(run);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): improve(net, data, {AdaRound{}})
  Method(M method)
      : name_(M::kName),
        apply_([method = std::move(method)](MethodRun& run) { method.apply(run); }) {}

  std::string_view name() const { return name_; }
  void apply(MethodRun& run) const { apply_(run); }

 private:
  std::string_view name_;
  std::function<void(MethodRun&)> apply_;
};

struct Improvement {
  std::vector<MethodRow> rows;
};

/// Applies methods, in this order, to a network that prepare_ptq or prepare_qat prepared:
///   quant::prepare_ptq(net, example, quant::QConfig::bits(4, 4));
///   std::cout << quant::improve(net, DataLoader{training_set.first(512)},
///                               {quant::Equalization{}, quant::WeightRanges{}, quant::AdaRound{},
///                                quant::BiasCorrection{}});
/// data: a few hundred samples; labels are not used. A network that is not calibrated is calibrated
/// with them first. The same data and seeds give the same bits, on any number of threads. What the
/// network computes in FloatMode may change.
/// Throws: GraphError if the network is not prepared; DataError if there is no batch or no method,
/// or an option is out of range; QuantError if it has no quantized weights; what calibrating and
/// running it throw. On an error, the network's state is as before.
Improvement improve(Module& net, const DataLoader& data, const std::vector<Method>& methods);

/// Prints a line for each row.
std::ostream& operator<<(std::ostream& stream, const Improvement& improvement);

}  // namespace quantrain::quant
