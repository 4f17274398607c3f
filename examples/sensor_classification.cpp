// Recognizes the state of a machine from a table of sensor values. The columns differ in magnitude;
// offsets and scales from the training rows normalize them. The integer model includes the
// normalization, so it takes raw values.
#include <filesystem>
#include <iostream>

#include "examples/common/program.hpp"
#include "examples/common/report.hpp"
#include "examples/data/pump.hpp"
#include "examples/tiny_networks.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/data/coverage.hpp"
#include "framework/data/csv.hpp"
#include "framework/data/features.hpp"
#include "framework/data/splits.hpp"

using namespace quantrain;

namespace {

struct TableFlags {
  std::string label = {};  // column of the classes; empty: the last
  std::string made = "pump.csv";
  int64_t rows = 8000;
};

struct Table {
  std::vector<std::string> features;  // names of the columns
  std::vector<float> values;          // [rows, features]
  TextClasses state;
};

Table read_table(const std::string& path, const std::string& label) {
  const CsvTable table = read_csv(path);
  const std::string target = label.empty() ? table.columns().back() : label;
  Table read;
  read.state = table.classes(target);
  for (const std::string& column : table.columns()) {
    if (column != target) read.features.push_back(column);
  }
  read.values = table.floats(read.features);
  return read;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Classifies the first row of raw sensor values, as a deployed program does, and prints the
/// values and their class. Returns the metadata to save with the model.
std::map<std::string, std::string> deploy(const IntegerModel& model,
                                          const Table& table,
                                          const std::vector<float>& rows) {
  const auto width = table.features.size();
  const std::span<const float> sample = std::span(rows).first(width);
  int32_t state = 0;
  model.classify(sample, {&state, 1});
  std::cout << "raw values ";
  for (size_t i = 0; i < width; ++i)
    std::cout << table.features[i] << ' ' << sample[i] << (i + 1 < width ? ", " : "");
  std::cout << ": " << table.state.names[static_cast<size_t>(state)] << '\n';
  return {{"features", joined(table.features)}, {"classes", joined(table.state.names)}};
}

examples::Task make_task(const examples::Flags& flags, const TableFlags& table_flags) {
  std::string path = flags.data;
  if (path.empty()) {
    path = table_flags.made;
    write_file(path, examples::pump_csv(table_flags.rows, flags.seed));
    std::cout << "made " << path << ", " << table_flags.rows << " rows\n";
  }
  const Table table = read_table(path, table_flags.label);
  const auto width = static_cast<int64_t>(table.features.size());
  const auto classes = static_cast<int64_t>(table.state.names.size());

  const auto parts =
      stratified_indices(table.state.labels, classes, std::vector{0.75, 0.25}, flags.seed);
  const std::vector<float> training_rows = rows_at(table.values, width, parts[0]);
  // By percentiles, because a sensor may show rare spikes, which would widen the range of all
  // values so far that most of them share a few codes.
  const InputFeatures features = fit_percentiles(training_rows, width, {.names = table.features});
  const Range range = percentile_range(training_rows, features);
  std::cout << coverage(training_rows, range, features, table.features);
  const Shape shape{static_cast<int64_t>(table.state.labels.size()), width};
  const Dataset all = Dataset::from_floats(
      shape, table.values, table.state.labels, classes, range, features, Outside::kSaturate);

  examples::Task task = examples::make_classification(
      examples::dataset_name(path), all.subset(parts[0]), all.subset(parts[1]), flags.limit);
  const TensorDataset floats(SampleArray::floats(shape, scaled(table.values, features)),
                             Labels{table.state.labels, classes});
  task.float_inputs = examples::make_float_inputs(
      floats.subset(parts[0]), floats.subset(parts[1]), flags.limit, task.score);
  task.settings = "--label " + table_flags.label + " --rows " + std::to_string(table_flags.rows);
  task.deploy = [table, rows = rows_at(table.values, width, parts[1])](const IntegerModel& model) {
    return deploy(model, table, rows);
  };
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  TableFlags table;
  return examples::run(
      argc,
      argv,
      {.name = "sensor_classification",
       .line = {.description = "Trains a small network on a table of sensor values and converts it "
                               "to an integer model that takes raw values.",
                .data =
                    "a .csv with names of columns in the first line; default: a generated table",
                .defaults = {.data = {}, .epochs = 30, .qat_epochs = 10, .learning_rate = 5e-3f},
                .flags = {{"--label", "column of the classes; default: the last", &table.label},
                          {"--made", "file for the generated table", &table.made},
                          {"--rows", "rows of the generated table", &table.rows, 100, 1'000'000}}},
       .task = [&](const examples::Flags& flags) { return make_task(flags, table); },
       .network =
           [](const examples::Task& task) {
             return examples::sensor_mlp(task.example.dim(1), task.outputs);
           }});
}
