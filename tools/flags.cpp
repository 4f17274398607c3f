#include "tools/flags.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/parallel.hpp"
#include "tools/command.hpp"

namespace quantrain::tools {

CLI::Option* flag(CLI::App& line,
                  const std::string& name,
                  std::string& value,
                  const std::string& placeholder,
                  const std::string& help) {
  CLI::Option* const option = line.add_option(name, value, help)->type_name(placeholder);
  const std::vector<std::string> allowed = choices(placeholder);
  if (!allowed.empty()) {
    option->check([=](const std::string& text) {
      if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) return std::string();
      return '"' + text + "\" is none of: " + joined(allowed);
    });
  }
  return option;
}

CLI::Option* flag(CLI::App& line,
                  const std::string& name,
                  int64_t& value,
                  int64_t least,
                  int64_t most,
                  const std::string& help) {
  return line.add_option(name, value, help)->type_name("N")->check([=](const std::string& text) {
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool fits = problem == std::errc() && end == text.data() + text.size();
    if (fits && number >= least && number <= most) return std::string();
    return '"' + text + "\" is no whole number from " + std::to_string(least) + " to " +
           std::to_string(most);
  });
}

CLI::Option* flag(CLI::App& line, const std::string& name, double& value, const std::string& help) {
  return line.add_option(name, value, help)
      ->type_name("NUMBER")
      ->check([](const std::string& text) {
        double number = 0.0;
        const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool fits = problem == std::errc() && end == text.data() + text.size();
        if (fits && std::isfinite(number) && number > 0.0) return std::string();
        return '"' + text + "\" is no positive number";
      });
}

CLI::Option* flag(CLI::App& line,
                  const std::string& name,
                  std::vector<std::string>& values,
                  const std::string& placeholder,
                  const std::string& help) {
  return line.add_option(name, values, help)->type_name(placeholder)->allow_extra_args(false);
}

void example(CLI::App& line, const std::string& commands) { line.footer("Example:\n" + commands); }

std::vector<std::string> parts(std::string_view text, char separator) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    all.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

std::vector<float> numbers(std::string_view name, std::string_view text) {
  std::vector<float> all;
  for (const std::string& part : parts(text, ',')) {
    float number = 0.0f;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (problem != std::errc() || end != part.data() + part.size() || !std::isfinite(number))
      throw WrongCall(name, '"', text, "\": \"", part, "\" is no number; write numbers as 0.5,1");
    all.push_back(number);
  }
  return all;
}

std::vector<int64_t> integers(std::string_view name,
                              std::string_view text,
                              int64_t least,
                              int64_t most) {
  std::vector<int64_t> all;
  for (const std::string& part : parts(text, ',')) {
    int64_t number = 0;
    const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (problem != std::errc() || end != part.data() + part.size() || number < least ||
        number > most)
      throw WrongCall(
          name, '"', text, "\": \"", part, "\" is no whole number from ", least, " to ", most);
    all.push_back(number);
  }
  if (all.empty()) throw WrongCall(name, "expected whole numbers, such as 1,64");
  return all;
}

int64_t bytes(std::string_view name, std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  const int shift = unit.empty() ? 0 : unit == "k" || unit == "K" ? 10 : unit == "M" ? 20 : -1;
  constexpr int64_t kMost = int64_t{1} << 40;
  if (problem != std::errc() || shift < 0 || number < 0 || number > kMost)
    throw WrongCall(name, '"', text, "\" is no number of bytes: write 65536, 64k or 1M");
  return number << shift;
}

void Common::declare(CLI::App& line) {
  line.add_flag("--json", json, "print the result as JSON");
  line.add_flag("--all", all, "print all rows of long tables");
  flag(line, "--threads", threads, 0, 1024, "threads; 0: as many as the process may use");
}

void Common::apply() const { set_threads(static_cast<int>(threads)); }

void BitsFlags::declare(CLI::App& line) {
  const auto bits_flag = [&](const char* name, int64_t& value, const char* help) {
    flag(line, name, value, kLeastBits, kMostBits, help);
  };
  bits_flag("--bits", bits, "bits of weights and values in hidden layers (default 8)");
  bits_flag("--weight-bits", weight_bits, "bits of weights, instead of --bits");
  bits_flag("--activation-bits", activation_bits, "bits of values, instead of --bits");
  flag(line,
       "--layer",
       layers,
       "LAYER=BITS",
       "bits of one layer, by its name in info or its type (Conv2d): 0.conv=4, or 0.conv=4/8 for "
       "weights and values; may be given several times");
  std::string kinds;
  for (const quant::ObserverSpec& spec : quant::observer_specs())
    kinds += (kinds.empty() ? "" : "|") + std::string(quant::kind(spec));
  flag(line, "--observer", observer, kinds, "chooses the ranges of values");
  line.add_flag("--learned", learned, "scales are parameters that training learns (LSQ)");
  line.add_flag("--per-tensor", per_tensor, "one scale for all channels of a weight");
  flag(line, "--config", config, "FILE", "a whole configuration as JSON, instead of these flags");
  // It comes last: the flags before it are read by then, and nothing else need be given.
  line.add_flag_callback(
      "--print-config",
      [this] { throw ShownInstead{read().to_json() + '\n'}; },
      "print the configuration that these flags mean as JSON, to be edited for --config");
}

bool BitsFlags::given() const {
  return bits != 8 || weight_bits != 0 || activation_bits != 0 || !layers.empty() ||
         !observer.empty() || !config.empty() || learned || per_tensor;
}

namespace {

void set_layer(quant::QConfig& config, const std::string& text) {
  const size_t equals = text.rfind('=');
  const std::vector<std::string> bits = equals == std::string::npos
                                            ? std::vector<std::string>{}
                                            : parts(text.substr(equals + 1), '/');
  const auto is_bits = [](const std::string& part) {
    return part.size() == 1 && part[0] >= '0' + kLeastBits && part[0] <= '0' + kMostBits;
  };
  if (equals == 0 || bits.empty() || bits.size() > 2 || !is_bits(bits[0]) || !is_bits(bits.back()))
    throw WrongCall("--layer",
                    '"',
                    text,
                    "\": write a layer and its bits, ",
                    kLeastBits,
                    " to ",
                    kMostBits,
                    ": 0.conv=4");
  quant::LayerConfig layer = config.model;
  layer.weight.bits = bits[0][0] - '0';
  layer.activation.bits = bits.back()[0] - '0';
  const std::string name = text.substr(0, equals);
  // Types of layers have capital letters; names that do not may be paths.
  const bool is_type = name[0] >= 'A' && name[0] <= 'Z' && name.find('.') == std::string::npos;
  (is_type ? config.types : config.layers)[name] = layer;
}

}  // namespace

quant::QConfig BitsFlags::read() const {
  if (!config.empty()) {
    BitsFlags others = *this;
    others.config.clear();
    if (others.given())
      throw WrongCall("--config", "the file says all bits: leave the other flags away");
    InputFile file(config);
    std::string text(static_cast<size_t>(file.left()), '\0');
    file.read({reinterpret_cast<uint8_t*>(text.data()), text.size()});
    return quant::QConfig::from_json(text);
  }
  const auto or_bits = [&](int64_t own) { return static_cast<int>(own > 0 ? own : bits); };
  quant::QConfig result = quant::QConfig::bits(or_bits(weight_bits), or_bits(activation_bits));
  quant::LayerConfig& model = result.model;
  if (!observer.empty()) model.activation.observer = quant::observer_spec(observer);
  if (learned) {
    model.weight.estimator = quant::Estimator::kLearned;
    model.activation.estimator = quant::Estimator::kLearned;
  }
  if (per_tensor) model.weight.per_channel = false;
  for (const std::string& layer : layers) set_layer(result, layer);
  return result;
}

void Budget::declare(CLI::App& line) {
  flag(line, "--ram", ram, "BYTES", "fail if the C99 code needs more RAM for its values: 32k");
  flag(line, "--flash", flash, "BYTES", "fail if its tables take more: 256k");
}

void Budget::check_call() const {
  if (!ram.empty()) bytes("--ram", ram);
  if (!flash.empty()) bytes("--flash", flash);
}

void Budget::check(int64_t ram_needed, int64_t flash_needed) const {
  if (!ram.empty() && ram_needed > bytes("--ram", ram))
    throw DataError("--ram",
                    "the network needs ",
                    ram_needed,
                    " bytes for its values, and may take ",
                    bytes("--ram", ram));
  if (!flash.empty() && flash_needed > bytes("--flash", flash))
    throw DataError("--flash",
                    "the network needs ",
                    flash_needed,
                    " bytes for its tables, and may take ",
                    bytes("--flash", flash));
}

}  // namespace quantrain::tools
