#include "layers/pytorch_weights.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/io/half.hpp"
#include "layers/feature_order.hpp"
#include "layers/read_state.hpp"
#include "layers/record_graph.hpp"
#include "layers/state.hpp"

namespace quantrain {
namespace {

constexpr const char* kLoadPytorch = "load_pytorch";

/// How the values of a state's entry move.
struct Move {
  FeatureOrder rows{};
  FeatureOrder columns{};
  bool has_ones = false;  ///< the last input channel is that of a OnesChannel
};

/// Whether `path` is `name` or a path of modules above it. "" is above every name.
bool is_above(std::string_view path, std::string_view name) {
  return path.empty() || name == path ||
         (name.size() > path.size() && name.starts_with(path) && name[path.size()] == '.');
}

std::string name_there(const std::string& name, const std::map<std::string, std::string>& names) {
  const std::pair<const std::string, std::string>* best = nullptr;
  for (const auto& entry : names) {
    const bool longer = best == nullptr || entry.first.size() >= best->first.size();
    if (longer && is_above(entry.first, name)) best = &entry;
  }
  if (best == nullptr) return name;
  std::string_view rest = std::string_view(name).substr(best->first.size());
  if (rest.starts_with('.')) rest.remove_prefix(1);
  if (best->second.empty() || rest.empty()) return best->second + std::string(rest);
  return best->second + "." + std::string(rest);
}

/// Finds out how the values of each entry move.
class Moves {
 public:
  Moves(Module& net, const Graph& graph, const std::vector<NamedState>& entries)
      : entries_(entries), moves_(entries.size()), known_(entries.size()) {
    const FeatureOrders orders(graph, kLoadPytorch);
    std::map<std::string, Module*> modules;
    for (const NamedModule& module : net.named_modules()) modules[module.name] = module.module;
    for (const GraphNode& node : graph.nodes()) {
      const int weight = node.node->traits().weight;
      if (weight < 0) {
        add_features(node, orders.of(node.index));
        continue;
      }
      const auto w = static_cast<size_t>(weight);
      Move move{.rows = orders.of(node.index), .columns = orders.of(node.producers[0])};
      if (node.producers[0] != GraphNode::kLeaf) {
        const auto before = modules.find(graph.node(node.producers[0]).scope());
        move.has_ones = before != modules.end() && before->second->type() == "OnesChannel";
      }
      add(node, node.inputs[w], move);
      if (w + 1 < node.inputs.size()) add(node, node.inputs[w + 1], {.rows = move.rows});
    }
  }

  const Move& of(size_t entry) const& { return moves_[entry]; }

 private:
  // Parameters and statistics of an operation that treats each feature by itself.
  void add_features(const GraphNode& node, const FeatureOrder& order) {
    if (order.empty()) return;
    const auto features = static_cast<int64_t>(order.size());
    for (const Tensor& input : node.inputs) {
      if (input.defined() && input.rank() == 1) add(node, input, {.rows = order});
    }
    for (size_t i = 0; i < entries_.size(); ++i) {
      const NamedState& entry = entries_[i];
      const std::string& scope = node.scope();
      const bool own = entry.name.size() > scope.size() && entry.name.starts_with(scope + ".") &&
                       entry.name.find('.', scope.size() + 1) == std::string::npos;
      if (own && entry.shape() == Shape{features}) add_entry(node, i, {.rows = order});
    }
  }

  void add(const GraphNode& node, const Tensor& tensor, const Move& move) {
    if (!tensor.defined()) return;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].tensor.same_as(tensor)) add_entry(node, i, move);
    }
  }

  void add_entry(const GraphNode& node, size_t i, const Move& move) {
    Move& own = moves_[i];
    const bool differs =
        own.rows != move.rows || own.columns != move.columns || own.has_ones != move.has_ones;
    if (known_[i] && differs) {
      throw GraphError(kLoadPytorch,
                       '"',
                       entries_[i].name,
                       "\" is used by several layers, and ",
                       node.scope(),
                       " needs its values in another order than the one before: give each layer "
                       "its own parameters");
    }
    known_[i] = true;
    own = move;
  }

  const std::vector<NamedState>& entries_;
  std::vector<Move> moves_;
  std::vector<bool> known_;
};

/// The shape of the entry in PyTorch's layout.
Shape shape_there(const Shape& here, bool has_ones) {
  if (here.rank() <= 2) {
    return has_ones ? Shape{here[0], here[1] - 1} : here;
  }
  std::vector<int64_t> extents{here[0], here.back() - (has_ones ? 1 : 0)};
  extents.insert(extents.end(), here.begin() + 1, here.end() - 1);
  return Shape(extents);
}

/// The values for an entry of shape `here`, from those of the file.
std::vector<float> moved(const std::vector<float>& there, const Shape& here, const Move& move) {
  std::vector<float> values(static_cast<size_t>(here.elements()), 0.0f);
  if (here.elements() == 0) return values;
  const int64_t rows = here[0];
  const int64_t inputs = here.rank() == 1 ? 1 : here.back();
  const int64_t inputs_there = inputs - (move.has_ones ? 1 : 0);
  const int64_t taps = here.elements() / (rows * inputs);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from_row = move.rows.empty() ? row : move.rows[static_cast<size_t>(row)];
    for (int64_t tap = 0; tap < taps; ++tap) {
      for (int64_t i = 0; i < inputs_there; ++i) {
        const int64_t from = move.columns.empty() ? i : move.columns[static_cast<size_t>(i)];
        values[static_cast<size_t>((row * taps + tap) * inputs + i)] =
            there[static_cast<size_t>((from_row * inputs_there + from) * taps + tap)];
      }
    }
  }
  return values;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 10;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i > 0 ? ", \"" : "\"") + names[i] + "\"";
  if (names.size() > kMost) text += " and " + std::to_string(names.size() - kMost) + " more";
  return text;
}

/// Throws unless the file has an entry for each of ours, and no other.
void check_names(const std::string& path,
                 const TensorFile& file,
                 const std::vector<std::pair<std::string, std::string>>& names,
                 const PytorchOptions& options) {
  std::set<std::string_view> used;
  std::vector<std::string> missing, left;
  for (const auto& [here, there] : names) {
    used.insert(there);
    if (!file.contains(there))
      missing.push_back(here == there ? here : there + " (here " + here + ")");
  }
  for (const TensorFile::Entry& entry : file.entries()) {
    const bool ignored =
        entry.name.ends_with("num_batches_tracked") ||
        std::any_of(options.ignored.begin(), options.ignored.end(), [&](const std::string& name) {
          return is_above(name, entry.name);
        });
    if (!ignored && !used.contains(entry.name)) left.push_back(entry.name);
  }
  if (missing.empty() && left.empty()) return;
  std::string text;
  if (!missing.empty()) text += ": has no " + listed(missing);
  if (!left.empty())
    text += std::string(text.empty() ? ": has " : "; it has ") + listed(left) +
            ", which the network does not have";
  throw DataError(kLoadPytorch,
                  path,
                  text,
                  ". PytorchOptions::names says how names differ, PytorchOptions::ignored what to "
                  "leave out");
}

std::vector<float> values_for(const std::string& path,
                              const TensorFile& file,
                              const std::string& there,
                              const NamedState& entry,
                              const Move& move) {
  const Shape& here = entry.shape();
  const Shape expected = shape_there(here, move.has_ones);
  const TensorFile::Entry& given = file.at(there);
  if (!(given.shape == expected)) {
    throw ShapeError(kLoadPytorch,
                     path,
                     ": \"",
                     there,
                     "\" is ",
                     given.shape,
                     ", but \"",
                     entry.name,
                     "\", which is ",
                     here,
                     " here, needs ",
                     expected);
  }
  const std::vector<float> values = float_values(file, there);
  const auto odd =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (odd != values.end())
    throw DataError(
        kLoadPytorch, path, ": \"", there, "\" contains ", *odd, ": it diverged in training");
  return moved(values, here, move);
}

}  // namespace

void load_pytorch(Module& net,
                  const Tensor& example,
                  const std::string& path,
                  const PytorchOptions& options) {
  check_examples(kLoadPytorch, {example});
  if (!net.slots().inputs.empty()) {
    throw GraphError(net.label(),
                     "is prepared for quantization: call load_pytorch before prepare_qat or "
                     "prepare_ptq");
  }
  const TensorFile file = read_state(kLoadPytorch, path);
  std::vector<NamedState> entries = state(net);
  std::erase_if(entries, [](const NamedState& entry) {
    return entry.holds_integers() || entry.constant;  // counts, such as those of Dropout
  });
  std::vector<std::pair<std::string, std::string>> names;
  for (const NamedState& entry : entries)
    names.emplace_back(entry.name, name_there(entry.name, options.names));
  check_names(path, file, names, options);

  const Moves moves(net, record_graph(net, example), entries);
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < entries.size(); ++i)
    values.push_back(values_for(path, file, names[i].second, entries[i], moves.of(i)));
  for (size_t i = 0; i < entries.size(); ++i)
    std::copy(values[i].begin(), values[i].end(), entries[i].tensor.mutable_data());
}

}  // namespace quantrain
