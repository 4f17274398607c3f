// Detects faults of a machine by its sound. An autoencoder learns to reproduce the sound of healthy
// bearings; a sound that it reproduces badly is an anomaly. The threshold is chosen on separate
// sounds, and is saved with the integer model.
#include "examples/common/program.hpp"
#include "examples/data/bearing_clips.hpp"
#include "examples/tiny_networks.hpp"

using namespace quantrain;

int main(int argc, char** argv) {
  examples::Clips clips;
  constexpr int64_t kLeast = 3, kMost = 100'000;
  const std::vector<examples::ProgramFlag> own_flags = {
      {"--clips", "healthy two-second sounds to train on", &clips.training, kLeast, kMost},
      {"--validation-clips",
       "healthy sounds to choose the threshold on",
       &clips.validation,
       kLeast,
       kMost},
      {"--test-clips",
       "healthy sounds to test on, and as many faulty ones",
       &clips.test,
       kLeast,
       kMost}};
  return examples::run(
      argc,
      argv,
      {.name = "anomaly_detection",
       .line = {.description = "Trains an autoencoder on sounds of healthy bearings, which the "
                               "program makes, and converts it to integers.",
                .data = {},
                .defaults = {.epochs = 20, .qat_epochs = 5, .batch = 128},
                .flags = own_flags},
       .task = [&](const examples::Flags& flags) { return examples::detect_faults(flags, clips); },
       .network = [](const examples::Task&) { return examples::autoencoder(); }});
}
