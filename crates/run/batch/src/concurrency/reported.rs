//! The rate limits that a target reports in the headers of its responses.

use std::time::Duration;

use formwork_core::{Counted, RateLimit, Usage};

/// The share of a limit that is left to other users of the key, so that the target refuses none of the calls.
const RESERVE: f64 = 0.05;

/// The longest time until a limit is full that bounds calls before nothing is left. A limit of a day would leave minutes between calls.
const SLOW: Duration = Duration::from_secs(600);

/// The longest pause that is waited for after a response that left nothing. After a longer one, a call is tried, and the target refuses it.
const LONGEST: Duration = Duration::from_secs(60);

/// The mean numbers of tokens of a call: all, those of the prompt that no cache had, and those of the answer; 0 before the first answer.
type Tokens = [f64; 3];

/// The number of answers of which a mean consists, about.
const MEAN_OF: f64 = 50.0;

/// A limit that fills steadily.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    counted: Counted,
    /// The number that is left for calls, negative if open calls take more.
    left: f64,
    most: f64,
    per_second: f64,
}

/// The limits by the newest report, less the calls that started after it.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    buckets: Vec<Bucket>,
    filled: f64,
    /// The time until which nothing is left.
    empty: f64,
    /// The number of calls that started, and of the newest one whose response reported limits.
    started: u64,
    newest: u64,
    tokens: Tokens,
    /// The number of answers in the mean, at most [`MEAN_OF`].
    answers: f64,
}

impl Reported {
    /// Returns the number of calls that may start now.
    pub(super) fn room(&mut self, now: f64) -> usize {
        self.fill(now);
        if now < self.empty {
            return 0;
        }
        // A wait may end a rounding error too early. The cast takes the nearest end of the range.
        let calls = |bucket: &Bucket| (bucket.left / bucket.cost(self.tokens) + 1e-6).max(0.0) as usize;
        self.buckets.iter().map(calls).min().unwrap_or(usize::MAX)
    }

    /// Returns the seconds until a call may start.
    pub(super) fn wait(&mut self, now: f64) -> f64 {
        self.fill(now);
        let wait = |bucket: &Bucket| (bucket.cost(self.tokens) - bucket.left) / bucket.per_second;
        self.buckets.iter().map(wait).fold(self.empty - now, f64::max).max(0.0)
    }

    /// Notes that a call starts, and returns its number.
    pub(super) fn started(&mut self, now: f64) -> u64 {
        self.fill(now);
        self.take(1.0);
        self.started += 1;
        self.started
    }

    /// Notes the tokens of a call and the limits that the headers of its response report. The call has this number and started at `started`.
    pub(crate) fn answered(
        &mut self,
        now: f64,
        call: u64,
        started: f64,
        usage: &Usage,
        limits: &[RateLimit],
    ) {
        let (input, output) = (usage.input_tokens, usage.output_tokens);
        let tokens = [input.saturating_add(output), input.saturating_sub(usage.cached_tokens), output];
        self.answers = (self.answers + 1.0).min(MEAN_OF);
        for (mean, tokens) in self.tokens.iter_mut().zip(tokens) {
            *mean += (tokens as f64 - *mean) / self.answers;
        }
        if limits.is_empty() || call < self.newest {
            return;
        }
        self.newest = call;
        let pause = RateLimit::pause(limits).filter(|pause| *pause <= LONGEST);
        self.empty = pause.map_or(0.0, |pause| started + pause.as_secs_f64());
        self.buckets = limits.iter().filter_map(Bucket::of).collect();
        // The target reported what was left when the call came.
        self.take(self.started.saturating_sub(call) as f64);
        self.filled = started;
        self.fill(now);
    }

    fn take(&mut self, calls: f64) {
        for bucket in &mut self.buckets {
            bucket.left -= calls * bucket.cost(self.tokens);
        }
    }

    fn fill(&mut self, now: f64) {
        let passed = (now - self.filled).max(0.0);
        self.filled = self.filled.max(now);
        for bucket in &mut self.buckets {
            bucket.left = bucket.per_second.mul_add(passed, bucket.left).min(bucket.most);
        }
    }
}

impl Bucket {
    /// Returns what a call takes.
    fn cost(&self, tokens: Tokens) -> f64 {
        let [all, input, output] = tokens;
        let cost = match self.counted {
            Counted::Tokens => all,
            Counted::InputTokens => input,
            Counted::OutputTokens => output,
            _ => 1.0,
        };
        // A call that takes more than all of it waits until the limit is full.
        cost.clamp(f64::MIN_POSITIVE, self.most)
    }

    /// Returns `None` for a limit that bounds nothing: it is full, its size is unknown, or it fills slowly.
    fn of(limit: &RateLimit) -> Option<Self> {
        let size = limit.limit.filter(|size| *size > limit.remaining)?;
        let is_known = limit.full_in <= SLOW && !limit.full_in.is_zero();
        is_known.then(|| {
            let reserve = (RESERVE * size as f64).ceil().min(size as f64 - 1.0);
            Self {
                counted: limit.counted,
                left: limit.remaining as f64 - reserve,
                most: size as f64 - reserve,
                per_second: (size - limit.remaining) as f64 / limit.full_in.as_secs_f64(),
            }
        })
    }
}
