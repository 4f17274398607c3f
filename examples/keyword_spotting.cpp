// Recognizes ten spoken words with DS-CNN, from cepstral coefficients of one second of sound.
// espeak-ng speaks the words. The test uses voices that do not occur in training.
#include "examples/common/program.hpp"
#include "examples/data/keywords.hpp"
#include "examples/data/speech.hpp"
#include "examples/tiny_networks.hpp"

using namespace quantrain;

int main(int argc, char** argv) {
  examples::SpeechFlags speech;
  const std::vector<examples::ProgramFlag> own_flags = {
      {"--cache", "folder for the words and their features", &speech.cache},
      {"--voices",
       "number of voices; every fourth is for the test",
       &speech.voices,
       4,
       static_cast<int64_t>(examples::human_voices().size())},
      {"--takes", "number of times that a voice says each word", &speech.takes, 1, 1000},
      {"--copies", "number of copies of a take, each with its own noise", &speech.copies, 1, 1000}};
  return examples::run(
      argc,
      argv,
      {.name = "keyword_spotting",
       .line = {.description = "Trains DS-CNN on words that espeak-ng speaks, and converts the "
                               "network to integers.",
                .data = {},
                .defaults = {.epochs = 20,
                             .qat_epochs = 3,
                             .learning_rate = 2e-3f,
                             .qat_learning_rate = 2e-4f},
                .flags = own_flags},
       .task = [&](const examples::Flags& flags) { return examples::spot_keywords(flags, speech); },
       .network = [](const examples::Task&) { return examples::ds_cnn(); }});
}
