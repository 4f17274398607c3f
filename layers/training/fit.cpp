#include "layers/training/fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/autograd/node.hpp"
#include "framework/autograd/ops/mul.hpp"
#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/core/text_table.hpp"
#include "framework/io/json_writer.hpp"
#include "framework/optim/clip.hpp"
#include "layers/evaluation_mode.hpp"
#include "layers/state.hpp"
#include "layers/training/check_loss.hpp"
#include "layers/training/data_parallel.hpp"
#include "layers/training/divergence.hpp"
#include "layers/training/epoch_log.hpp"
#include "layers/training/position.hpp"
#include "layers/training/progress.hpp"
#include "layers/training/settings.hpp"
#include "layers/training/share_state.hpp"

namespace quantrain {
namespace {

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw DataError("fit", parts...);
}

/// One call of fit().
class Run {
 public:
  Run(Module& net, Optimizer& optimizer, DataLoader& loader, const FitOptions& options)
      : net_(net), optimizer_(optimizer), loader_(loader), options_(options) {
    check_options();
    if (options.ranks != nullptr || shards() > 1) {
      make_parallel();
      static_cast<void>(loader.sharded(parallel_->sharding()));
    }
    if (is_first() && saves()) checkpoints_.emplace(options.checkpoints);
    if (is_first() && !options.page.empty()) check_writable(options.page);
    if (is_first() && !options.log.empty()) log_.emplace(options.log);
    if (keeps_best()) {
      for (const NamedState& entry : state(net)) best_.push_back(entry.copy());
    }
  }

  FitResult run(const std::function<Tensor(Batch&)>& loss) {
    if (!loss) fail("there is no loss: give a function of a batch");
    at_.learning_rate = optimizer_.learning_rate();
    if (saves() || options_.ranks != nullptr) {
      FitOptions used = options_;
      used.shards = shards();
      settings_ = run_settings(used, loader_, optimizer_.learning_rate());
    }
    if (options_.ranks != nullptr) check_same();
    if (options_.checkpoints.resume && saves()) resume();
    largest_at_start_ = largest_parameter(net_).magnitude;
    const bool finished = at_.ended;
    const std::string differs = finished ? differences(at_.settings, settings_) : "";
    if (finished) say_finished(differs);
    while (!at_.ended && at_.epochs < options_.epochs && !has_all_steps()) run_epoch(loss);
    if (!at_.ended) end();
    if (is_first() && !options_.page.empty()) {
      write_file(options_.page,
                 training_page(options_.label.empty() ? "Training" : options_.label, at_.done));
    }
    const std::string run =
        from_first([&] { return checkpoints_ ? checkpoints_->options().run : ""; });
    remember_saved();
    return {.epochs = std::move(at_.done),
            .steps = at_.steps,
            .best_epoch = at_.best ? std::optional(at_.best->epoch) : std::nullopt,
            .stopped_early = at_.stopped_early,
            .already_finished = finished,
            .differences = differs,
            .run = run};
  }

 private:
  void check_options() const {
    const EarlyStopping& early = options_.early_stopping;
    if (options_.epochs < 1) fail("epochs is ", options_.epochs, ", expected at least 1");
    if (options_.steps < 0) fail("steps is ", options_.steps, ", expected 0 or more");
    if (options_.accumulate < 1)
      fail("accumulate is ", options_.accumulate, ", expected at least 1 batch");
    if (options_.shards < 0) fail("shards is ", options_.shards, ", expected 0 or more");
    if (options_.first_epoch < 0)
      fail("first_epoch is ", options_.first_epoch, ", expected 0 or more");
    if (!(options_.clip_norm >= 0.0f && std::isfinite(options_.clip_norm)))
      fail("clip_norm is ", options_.clip_norm, ", expected 0 or a finite number above 0");
    if (early.patience < 0) fail("patience is ", early.patience, ", expected 0 or more epochs");
    if (early.patience > 0 && early.metric.empty())
      fail(
          "early_stopping.patience is set, but no metric is named: name one that evaluate returns");
    if (!early.metric.empty() && !early.smaller_is_better)
      fail("early_stopping.smaller_is_better is not set: write true if \"",
           early.metric,
           "\" is an error, false if it is an accuracy");
    if (!early.metric.empty() && !options_.evaluate)
      fail("early_stopping needs \"", early.metric, "\", but there is no evaluate to return it");
    for (const NamedState& entry : options_.also) {
      if (!is_utf8(entry.name)) fail("a name in also is not UTF-8: \"", entry.name, '"');
    }
    if (options_.checkpoints.folder.empty() && options_.checkpoints.resume)
      fail("resume is set, but checkpoints.folder is empty");
  }

  int64_t shards() const {
    constexpr int64_t kWithRanks = 8;
    return options_.shards > 0 ? options_.shards : options_.ranks != nullptr ? kWithRanks : 1;
  }
  void make_parallel() {
    parallel_.emplace(
        net_,
        optimizer_,
        DataParallelOptions{.shards = shards(), .ranks = options_.ranks, .also = options_.also});
  }
  /// Whether this process writes files, prints and evaluates: of several ranks, the first.
  bool is_first() const { return options_.ranks == nullptr || options_.ranks->is_first(); }
  std::string label() const { return is_first() ? options_.label : ""; }
  bool saves() const { return !options_.checkpoints.folder.empty(); }

  /// Rank 0's text. Other ranks do not call the function.
  template <class F>
  std::string from_first(const F& text) const {
    if (options_.ranks == nullptr) return text();
    return options_.ranks->broadcast(is_first() ? std::string(text()) : std::string());
  }

  void check_same() const {
    std::vector<Fact> facts(settings_.begin(), settings_.end());
    facts.emplace_back("checkpoints.configuration", options_.checkpoints.configuration);
    facts.emplace_back("checkpoints.resume", options_.checkpoints.resume ? "on" : "off");
    facts.emplace_back("checkpoints", saves() ? "on" : "off");
    const EarlyStopping& early = options_.early_stopping;
    const bool stops = !early.metric.empty();
    facts.emplace_back("early_stopping.restore_best", keeps_best() ? "on" : "off");
    facts.emplace_back("early_stopping.smaller_is_better",
                       stops && *early.smaller_is_better ? "on" : "off");
    parallel_->check_same(std::move(facts));
  }

  bool keeps_best() const {
    return !options_.early_stopping.metric.empty() && options_.early_stopping.restore_best;
  }
  bool has_all_steps() const { return options_.steps > 0 && at_.steps >= options_.steps; }

  /// All state that a resumed run needs. The entries share their values with the originals.
  std::vector<NamedState> whole_state() const {
    std::vector<NamedState> all;
    const auto add = [&all](const char* prefix, std::vector<NamedState> entries) {
      for (NamedState& entry : entries) {
        entry.name = prefix + entry.name;
        all.push_back(std::move(entry));
      }
    };
    add("net.", state(net_));
    add("optimizer.", optimizer_.state());
    add("also.", options_.also);
    add("best.", best_);
    return all;
  }

  void resume() {
    const std::string position =
        from_first([&] { return checkpoints_->load(whole_state()).value_or(""); });
    if (position.empty()) return;
    at_ = position_from(position);
    if (options_.ranks != nullptr) {
      share_state(*options_.ranks, whole_state());
      saved_ = at_.steps;
      remember_saved();
    }
    if (!at_.ended && at_.loader != loader_text()) {
      fail("the checkpoint was taken with ",
           at_.loader,
           ", and this run has ",
           loader_text(),
           ": resume with the data and the loader's options of that run");
    }
    const std::string& metric = options_.early_stopping.metric;
    if (!at_.ended && at_.best && !metric.empty() && !at_.best->metrics.contains(metric)) {
      fail("the checkpoint's best epoch has no metric \"",
           metric,
           "\": resume with the early_stopping of that run");
    }
    if (at_.batch >= loader_.batches()) {
      fail("the checkpoint was taken after batch ",
           at_.batch,
           " of an epoch, but an epoch now has ",
           loader_.batches(),
           " batches: resume with the data and the batch size of that run");
    }
    if (const std::optional<int64_t> samples = loader_.samples(); samples && at_.samples > *samples)
      fail("the checkpoint's epoch has used ", at_.samples, " samples of ", *samples);
    optimizer_.set_learning_rate(at_.learning_rate);
    if (log_) log_->resume(at_.done, at_.epochs);
  }

  /// What decides, with the epoch's number, which samples each batch holds.
  std::string loader_text() const {
    const LoaderOptions& options = loader_.options();
    TextStream text;
    text << loader_.samples().value_or(0) << " samples, batch " << options.batch << ", seed "
         << options.seed << ", first epoch " << options_.first_epoch
         << (options.shuffle ? ", shuffle" : "") << (options.drop_last ? ", drop_last" : "")
         << (options.merge_last ? ", merge_last" : "");
    if (shards() > 1) text << ", " << shards() << " shards";
    return text.str();
  }

  void save() {
    at_.loader = loader_text();
    at_.settings = settings_;
    at_.learning_rate = optimizer_.learning_rate();  // callbacks may have changed it
    if (checkpoints_) checkpoints_->save(at_.steps, whole_state(), to_text(at_));
    saved_ = at_.steps;
    if (checkpoints_) remember_saved();
  }

  /// Says, if a rank dies, where the last checkpoint is. Ranks other than 0 call it after rank 0's
  /// next call, because rank 0 may still write when they go on.
  void remember_saved() {
    const std::optional<int64_t> step = std::exchange(saved_, std::nullopt);
    if (options_.ranks == nullptr || !saves() || !step) return;
    options_.ranks->remember("the last checkpoint is that of step " + std::to_string(*step) +
                             " in " + options_.checkpoints.folder);
  }

  void run_epoch(const std::function<Tensor(Batch&)>& loss) {
    if (at_.batch == 0 && options_.begin_epoch) options_.begin_epoch(at_.epochs);
    net_.train();
    if (parallel_) make_parallel();  // a callback may have filled slots
    const std::string number =
        std::to_string(at_.epochs + 1) + '/' + std::to_string(options_.epochs);
    Progress progress(label().empty() ? "" : label() + " epoch " + number,
                      loader_.samples().value_or(0),
                      at_.seconds);
    progress.step(at_.samples, at_.loss_sum);
    const int64_t batches = loader_.batches();
    int64_t index = 0;
    const auto use = [&](auto& batch) {  // false: the last step
      if (index++ < at_.batch) return true;
      const int64_t samples = batch.size();
      const float value = train_on(batch, loss, batches);
      const double sum = static_cast<double>(value) * static_cast<double>(samples);
      at_.loss_sum += sum;
      at_.samples += samples;
      at_.batch = index;
      progress.step(samples, sum);
      if (!stepped_) return true;
      at_.seconds = progress.seconds();
      if (options_.after_step) options_.after_step(at_.steps, value);
      const int64_t every = options_.checkpoints.every;
      if (every > 0 && at_.steps % every == 0 && at_.batch < batches) save();
      return !has_all_steps();
    };
    const auto use_all = [&](auto&& all) {
      for (auto& batch : all) {
        if (!use(batch)) break;
      }
    };
    const int64_t number_of_epoch = options_.first_epoch + at_.epochs;
    if (parallel_)
      use_all(parallel_->epoch(loader_, number_of_epoch));
    else
      use_all(loader_.epoch(number_of_epoch));
    end_epoch(progress);
  }

  // Runs the network. If it refuses to run because training has diverged, the error says so. A
  // quantized network refuses values that float32 still holds.
  template <class F>
  auto watched(const F& part) const try {
    return part();
  } catch (const Error& error) {
    if (at_.steps == 0) throw;
    const LargestParameter largest = largest_parameter(net_);
    if (!has_diverged(largest_at_start_, largest.magnitude)) throw;
    fail("training diverged by step ",
         at_.steps,
         ": \"",
         largest.name,
         "\" reaches ",
         largest.magnitude,
         "; the learning rate ",
         at_.learning_rate,
         " may be too large. The network failed with: ",
         error.what());
  }

  float add_gradients(Batch& batch, const std::function<Tensor(Batch&)>& loss, int64_t share) {
    Tensor y = checked_loss(batch, loss);
    const float value = y.item();
    if (share > 1) y = mul(y, Tensor::full(y.shape(), 1.0f / static_cast<float>(share)));
    y.backward();
    return value;
  }
  float add_gradients(ShardedBatch& batch,
                      const std::function<Tensor(Batch&)>& loss,
                      int64_t share) {
    const float value = parallel_->backward(
        batch,
        [&](Batch& shard) { return checked_loss(shard, loss); },
        1.0f / static_cast<float>(share));
    remember_saved();
    return value;
  }

  /// The loss, which trains the network and is finite.
  Tensor checked_loss(Batch& batch, const std::function<Tensor(Batch&)>& loss) {
    const int64_t samples = batch.size();
    Tensor y = watched([&] { return loss(batch); });
    if (!checked_) check_loss(y, net_, optimizer_, options_.also);
    if (!checked_ && reaches_last_batch()) check_last_batch(y, samples, loader_);
    checked_ = true;
    const float value = y.item();
    if (!std::isfinite(value) && at_.steps == 0) {
      fail("the loss is ",
           value,
           " before the first step: the data, the weights or the loss function give NaN, an "
           "infinity or numbers that are too large");
    }
    if (!std::isfinite(value)) {
      fail("the loss is ",
           value,
           " in step ",
           at_.steps,
           ": the learning rate ",
           at_.learning_rate,
           " may be too large");
    }
    return y;
  }

  // Adds one batch's gradients to those of the current step. After the step's last batch, also
  // takes the step. Returns the loss.
  template <class AnyBatch>
  float train_on(AnyBatch& batch, const std::function<Tensor(Batch&)>& loss, int64_t batches) {
    const int64_t first = at_.batch / options_.accumulate * options_.accumulate;
    const int64_t share = std::min(options_.accumulate, batches - first);
    if (at_.batch == first) {
      if (options_.schedule) optimizer_.set_learning_rate(options_.schedule(at_.steps));
      at_.learning_rate = optimizer_.learning_rate();
      optimizer_.zero_grad();
    }
    const float value = add_gradients(batch, loss, share);
    stepped_ = at_.batch + 1 == first + share;
    if (!stepped_) return value;
    if (options_.clip_norm > 0.0f) clip_grad_norm(optimizer_.parameters(), options_.clip_norm);
    optimizer_.step();
    ++at_.steps;
    return value;
  }

  void end_epoch(Progress& progress) {
    progress.stop();
    EpochReport report{.epoch = at_.epochs,
                       .steps = at_.steps,
                       .loss = at_.loss_sum / static_cast<double>(at_.samples),
                       .learning_rate = at_.learning_rate,
                       .seconds = at_.seconds};
    if (options_.evaluate && is_first()) {
      const EvaluationMode evaluation(net_);
      const NoGrad no_grad;
      report.metrics = watched(options_.evaluate);
    }
    for (const auto& [name, value] : report.metrics) {
      if (!is_utf8(name))
        fail("the metric \"", name, "\" has a name that is not UTF-8: write it in UTF-8");
      if (is_report_field(name))
        fail("the metric \"", name, "\" has the name of a field of EpochReport: choose another");
      if (!std::isfinite(value)) fail("the metric \"", name, "\" is ", value);
    }
    if (options_.ranks != nullptr) {
      share_metrics(*options_.ranks, report.metrics);
      remember_saved();
      TextStream rate;
      rate.precision(9);  // all digits of a float32
      rate << optimizer_.learning_rate();
      parallel_->check_same({{"learning rate", rate.str()}});
    }
    at_.done.push_back(std::move(report));
    thin(at_.done);
    ++at_.epochs;
    at_.batch = 0;
    at_.loss_sum = at_.seconds = 0.0;
    at_.samples = 0;
    judge();
    progress.finish(describe(at_.done.back()));
    if (log_) log_->add(at_.done.back());
    if (at_.stopped_early || has_all_steps() || at_.epochs == options_.epochs)
      end();
    else
      save();
  }

  /// Updates best_epoch, and stops early if the best epoch was too long ago.
  void judge() {
    const EarlyStopping& early = options_.early_stopping;
    if (early.metric.empty()) return;
    const EpochReport& last = at_.done.back();
    if (!last.metrics.contains(early.metric))
      fail("evaluate returned no \"", early.metric, "\", which early_stopping needs");
    const auto value = [&](const EpochReport& report) {
      const double v = report.metrics.at(early.metric);
      return *early.smaller_is_better ? -v : v;
    };
    if (!at_.best || value(last) > value(*at_.best)) {
      at_.best = last;
      if (keeps_best()) copy_values(false);
    }
    at_.stopped_early = early.patience > 0 && last.epoch - at_.best->epoch >= early.patience;
  }

  void copy_values(bool restore) {
    std::vector<NamedState> own = state(net_);
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i].constant) continue;
      NamedState& to = restore ? own[i] : best_[i];
      to.copy_values(restore ? best_[i] : own[i]);
    }
  }

  void end() {
    if (keeps_best() && at_.best) copy_values(true);
    at_.ended = true;
    save();
    if (at_.best) say_best();
  }

  /// The metrics of an epoch for the progress display: "accuracy 0.9100 (best)".
  std::string describe(const EpochReport& report) const {
    constexpr size_t kShown = 6;
    const std::string& best = options_.early_stopping.metric;
    std::string text;
    const auto add = [&](const std::string& name, double value) {
      text += (text.empty() ? "" : ", ") + name + ' ' + decimals(value, 4);
      if (name == best && at_.best && at_.best->epoch == report.epoch) text += " (best)";
    };
    if (report.metrics.contains(best)) add(best, report.metrics.at(best));
    size_t shown = 0;
    for (const auto& [name, value] : report.metrics) {
      if (name == best || ++shown > kShown) continue;
      add(name, value);
    }
    if (shown > kShown) text += ", " + std::to_string(shown - kShown) + " more";
    return text;
  }

  void say_best() const {
    const EpochReport& best = *at_.best;
    const std::string& metric = options_.early_stopping.metric;
    TextStream text;
    if (at_.stopped_early) text << "stopped early after epoch " << at_.epochs << "; ";
    text << "best epoch " << best.epoch + 1 << ", " << metric << ' '
         << decimals(best.metrics.at(metric), 4);
    if (keeps_best()) text << ", whose state is restored";
    say(text.str());
  }

  void say_finished(const std::string& differs) const {
    TextStream text;
    text << "the run in " << options_.checkpoints.folder << " had ended after " << at_.epochs
         << (at_.epochs == 1 ? " epoch" : " epochs") << ", so nothing was trained";
    if (!differs.empty())
      text << ", although " << differs << ": to train with these settings, name another folder";
    say(text.str());
  }

  void say(const std::string& line) const {
    if (!label().empty()) print_progress(label() + ": " + line);
  }

  /// Whether the run uses the last batch of an epoch.
  bool reaches_last_batch() const {
    return options_.steps == 0 || options_.steps > (loader_.batches() - 1) / options_.accumulate;
  }

  Module& net_;
  Optimizer& optimizer_;
  DataLoader& loader_;
  const FitOptions& options_;
  std::optional<DataParallel> parallel_;  // only with shards
  std::optional<Checkpoints> checkpoints_;
  std::optional<EpochLog> log_;
  std::vector<NamedState> best_;
  TrainingPosition at_;
  float largest_at_start_ = 0.0f;  // magnitude of the parameters
  RunSettings settings_;           // only with checkpoints
  std::optional<int64_t> saved_;   // the step of a checkpoint that remember_saved() has to say
  bool stepped_ = false;
  bool checked_ = false;  // the first loss
};

}  // namespace

FitResult fit(Module& net,
              Optimizer& optimizer,
              DataLoader& loader,
              const std::function<Tensor(Batch&)>& loss,
              const FitOptions& options) {
  if (options.ranks == nullptr) return Run(net, optimizer, loader, options).run(loss);
  try {
    return Run(net, optimizer, loader, options).run(loss);
  } catch (const std::exception& error) {
    options.ranks->fail(error.what());
    throw;
  } catch (...) {
    options.ranks->fail("an exception that is no std::exception");
    throw;
  }
}

}  // namespace quantrain
