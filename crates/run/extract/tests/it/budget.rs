use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use formwork_core::*;
use formwork_extract::{Budget, Budgets, CancellationToken, Extractor};
use formwork_testkit::{Reply, Scripted};
use futures_util::StreamExt as _;
use proptest::prelude::*;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::support::*;

/// A model that waits for a permit before it answers.
#[derive(Debug)]
struct Gated(Scripted, Semaphore);

#[async_trait::async_trait]
impl Provider for Gated {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        self.1.acquire().await.unwrap().forget();
        self.0.call(call).await
    }
}

fn tokens(tokens: u64) -> Cost {
    Cost { tokens, micro_usd: None }
}

#[tokio::test]
async fn the_second_of_two_runs_waits_for_the_rest_of_the_first_reservation() {
    let usage = Usage::new(10, 30);
    let reply = formwork_testkit::Reply::completion(Completion::new(MARIA).with_usage(usage));
    let model = Arc::new(Gated(Scripted::new([reply]), Semaphore::new(0)));
    let budget = Budget::new(tokens(1_500));
    let builder = persons(&model).0.with_max_tokens(1_000).with_shared_budget(budget.clone());
    let extractor = builder.build().unwrap();

    let open = || async {
        // Both runs have begun, and only one of them has a reservation.
        tokio::task::yield_now().await;
        assert!(budget.remaining().tokens < 500);
        assert_eq!(model.0.calls().len(), 0);
        model.1.add_permits(2);
    };
    let (first, second, ()) = tokio::join!(extractor.extract(TEXT), extractor.extract(TEXT), open());
    assert_eq!((first.unwrap().usage, second.unwrap().usage), (usage, usage));
    assert_eq!((budget.spent().tokens, budget.remaining().tokens), (80, 1_420));
}

/// A model whose calls take 100 ms, and the maximum number of calls that were open at once.
#[derive(Debug)]
struct Slow {
    script: Scripted,
    open: AtomicUsize,
    max_open: AtomicUsize,
}

impl Slow {
    fn new(replies: impl IntoIterator<Item = impl Into<Reply>>) -> Arc<Self> {
        Arc::new(Self {
            script: Scripted::new(replies),
            open: AtomicUsize::new(0),
            max_open: AtomicUsize::new(0),
        })
    }
}

#[async_trait::async_trait]
impl Provider for Slow {
    fn name(&self) -> &str {
        self.script.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.script.capabilities()
    }

    async fn call(&self, call: &Call) -> Result<Answer, Fault> {
        self.max_open.fetch_max(self.open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.script.call(call).await
    }
}

/// 1 and 4 US dollars per million tokens.
const PRICE: Price = Price::new(1_000_000, 4_000_000);

fn money(micro_usd: u64) -> Cost {
    Cost { tokens: u64::MAX, micro_usd: Some(micro_usd) }
}

/// Returns the budget of money, and the results of 40 rows at concurrency 8 under it.
async fn rows(model: &Arc<Slow>, micro_usd: u64) -> (Budget, Vec<Result<Outcome<Person>, Error>>) {
    let budget = Budget::new(money(micro_usd));
    let builder = Extractor::<Person>::builder().with_target(backend(model).with_price(PRICE));
    let extractor = builder.with_shared_budget(budget.clone()).build().unwrap();
    let results = extractor.extract_all(vec![TEXT; 40], 8).collect().await;
    (budget, results)
}

/// The real cost of one row of 20 and 10 tokens.
const REAL: u64 = 60;

fn row() -> Reply {
    Reply::completion(Completion::new(MARIA).with_usage(Usage::new(20, 10)))
}

/// Returns the maximum cost of one call.
fn reservation() -> u64 {
    let builder = Extractor::<Person>::builder().with_target(backend(&Slow::new([row()])).with_price(PRICE));
    let extractor = builder.with_shared_budget(Budget::new(money(1))).build().unwrap();
    let plan = extractor.plan();
    let mut run = Run::new(plan, Input::new([Message::user(TEXT)]));
    let Step::Call { reserve, .. } = run.step(plan, Time(0)).unwrap() else { panic!() };
    reserve.micro_usd.unwrap()
}

#[tokio::test(start_paused = true)]
async fn rows_wait_for_open_calls_and_all_succeed_under_a_budget_that_covers_their_real_cost() {
    let reservation = reservation();
    assert!(reservation > 40 * REAL, "{reservation}: a reservation is more than all rows cost");
    for (name, budget, open) in [
        ("45 times the real cost of all rows", 45 * 40 * REAL, 8),
        ("several reservations", 3 * reservation + 39 * REAL, 8),
        ("one reservation beside the cost of the other rows", reservation + 39 * REAL, 8),
        ("one reservation", reservation, 8),
    ] {
        let model = Slow::new([row()]);
        let (budget, results) = rows(&model, budget).await;
        let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(failed.is_empty(), "{name}: {} of 40 rows failed: {}", failed.len(), failed[0]);
        assert_eq!(budget.spent().micro_usd, Some(40 * REAL), "{name}");
        let max_open = model.max_open.load(Ordering::SeqCst);
        assert!(max_open <= open, "{name}: {max_open} calls were open at once");
    }
}

#[tokio::test(start_paused = true)]
async fn rows_end_with_the_budget_once_the_smallest_call_does_not_fit() {
    // A limit of 256 tokens is the smallest, and costs 1,024 beside the input.
    for limit in [1_025 + 200, 40 * REAL - 1] {
        let (budget, results) = rows(&Slow::new([row()]), limit).await;
        let failed: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert!(!failed.is_empty(), "{limit}");
        assert!(failed.iter().all(|error| error.kind() == ErrorKind::Budget && error.calls().is_empty()));
        let spent = (results.len() - failed.len()) as u64 * REAL;
        assert_eq!(budget.spent().micro_usd, Some(spent), "{limit}");
        // The rest does not pay for the smallest call with the longest input.
        assert!(limit - spent < 1_024 + reservation() / 2, "{limit}: {spent} spent");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_was_lowered_for_the_budget_is_raised_if_it_cuts_an_answer_off() {
    let reservation = reservation();
    let cut = || {
        let text = Completion::new(&MARIA[..MARIA.len() - 4]).with_usage(Usage::new(20, 256));
        Reply::completion(text.with_finish(Finish::Length))
    };
    let model = Slow::new([row(), cut(), row()]);
    let budget = Budget::new(money(reservation));
    let builder = Extractor::<Person>::builder().with_target(backend(&model).with_price(PRICE));
    let extractor = builder.with_shared_budget(budget).build().unwrap();
    let results: Vec<_> = extractor.extract_all(vec![TEXT; 2], 1).collect().await;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    let limits: Vec<_> = model.script.calls().iter().map(|call| call.max_tokens.unwrap()).collect();
    assert_eq!(limits[1..], [256, 512], "{limits:?}");
}

#[tokio::test(start_paused = true)]
async fn waiting_for_a_budget_ends_at_the_deadline_at_its_bound_and_at_a_cancellation() {
    let usage = Usage::new(10, 30);
    let reply = Reply::completion(Completion::new(MARIA).with_usage(usage));
    for (deadline, bound, cancelled, expected) in [
        (Some(20), None, None, (ErrorKind::Deadline, 20)),
        (None, Some(30), None, (ErrorKind::Budget, 30)),
        (None, Some(0), None, (ErrorKind::Budget, 0)),
        (Some(20), Some(30), None, (ErrorKind::Deadline, 20)),
        (Some(50), Some(60), Some(10), (ErrorKind::Cancelled, 10)),
        (None, None, Some(10), (ErrorKind::Cancelled, 10)),
    ] {
        let model = Arc::new(Gated(Scripted::new([reply.clone()]), Semaphore::new(0)));
        let budget = Budget::new(tokens(1_500));
        let builder = || {
            let builder = Extractor::<Person>::builder().with_target(backend(&model)).with_max_tokens(1_000);
            builder.with_shared_budget(budget.clone())
        };
        let mut waiting = builder();
        if let Some(seconds) = deadline {
            waiting = waiting.with_deadline(Duration::from_secs(seconds));
        }
        if let Some(seconds) = bound {
            waiting = waiting.with_max_budget_wait(Duration::from_secs(seconds));
        }
        let (first, waiting) = (builder().build().unwrap(), waiting.build().unwrap());
        let token = CancellationToken::new();
        let started = Instant::now();
        let second = async {
            tokio::task::yield_now().await;
            let result = waiting.extraction(TEXT).with_cancel(token.clone()).run().await;
            let waited = started.elapsed().as_secs();
            model.1.add_permits(2);
            (result.unwrap_err(), waited)
        };
        let cancel = async {
            if let Some(seconds) = cancelled {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                token.cancel();
            }
        };
        let (first, (error, waited), ()) = tokio::join!(first.extract(TEXT), second, cancel);
        assert!(first.is_ok());
        assert_eq!((error.kind(), waited), expected, "{error}");
        assert!(error.calls().is_empty(), "a call that was not made is in no ledger");
        assert_eq!(budget.remaining().tokens, 1_460, "and in no budget");
        // The queue is empty again.
        assert!(builder().build().unwrap().extract(TEXT).await.is_ok());
    }
}

#[test]
fn blocking_runs_on_several_threads_wait_for_each_other() {
    let reply = Reply::completion(Completion::new(MARIA).with_usage(Usage::new(10, 30)));
    let model = Arc::new(Scripted::new([reply]));
    let budget = Budget::new(tokens(1_800));
    let builder = Extractor::<Person>::builder().with_target(backend(&model)).with_max_tokens(1_000);
    let extractor = builder.with_shared_budget(budget.clone()).build().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(extractor.extract_blocking(TEXT).unwrap().value, maria()));
        }
    });
    assert_eq!(budget.spent().tokens, 8 * 40);
}

#[tokio::test]
async fn two_targets_succeed_in_either_order_under_a_budget_for_the_cheap_one() {
    let wrong = || Reply::completion(Completion::new(TOO_OLD).with_usage(Usage::new(20, 10)));
    for (order, own) in [
        (["dear", "cheap"], true),
        (["cheap", "dear"], true),
        (["dear", "cheap"], false),
        (["cheap", "dear"], false),
    ] {
        let cheap = Arc::new(Scripted::new([wrong(), row()]).with_name("cheap"));
        let dear = Arc::new(Scripted::new([row()]).with_name("dear"));
        let priced = Price::new(1_000_000_000, 4_000_000_000);
        let mut builder = Extractor::<Person>::builder().with_max_attempts(2);
        for name in order {
            builder = builder.with_target(match name {
                "dear" => backend(&dear).with_price(priced),
                _ => backend(&cheap).with_price(PRICE),
            });
        }
        builder = match own {
            true => builder.with_budget(money(20_000)),
            false => builder.with_shared_budget(Budget::new(money(20_000))),
        };
        let outcome = builder.build().unwrap().extract(TEXT).await.unwrap();
        let targets: Vec<_> = outcome.calls.iter().map(|call| call.target.as_str()).collect();
        assert_eq!(targets, ["cheap", "cheap"], "{order:?}, own budget: {own}");
    }
}

#[tokio::test]
async fn an_answer_without_usage_costs_an_estimate_and_warns() {
    for (usage, is_estimated) in
        [(Usage::new(20, 10), false), (Usage::new(20, 0), true), (Usage::default(), true)]
    {
        let deltas = [Delta::Text(MARIA.to_owned()), Delta::End(End::new(Finish::Stop, usage))];
        let model = Arc::new(Silent(deltas.to_vec(), Capabilities::new(Enforcement::Schema)));
        let budget = Budget::new(money(100_000));
        let builder = Extractor::<Person>::builder().with_target(backend(&model).with_price(PRICE));
        let outcome =
            builder.with_shared_budget(budget.clone()).build().unwrap().extract(TEXT).await.unwrap();
        let kinds: Vec<_> = outcome.warnings.iter().map(|warning| warning.kind).collect();
        assert_eq!(kinds, vec![WarningKind::EstimatedUsage; usize::from(is_estimated)], "{usage:?}");
        assert_eq!(outcome.calls[0].usage.estimated, is_estimated);
        let text = MARIA.len().div_ceil(4) as u64;
        assert_eq!(outcome.usage.output_tokens, if is_estimated { text } else { 10 });
        assert!(budget.spent().micro_usd > Some(30) && budget.spent() == outcome.cost, "{budget:?}");
    }
}

/// A model that sends these deltas.
#[derive(Debug)]
struct Silent(Vec<Delta>, Capabilities);

#[async_trait::async_trait]
impl Provider for Silent {
    fn name(&self) -> &str {
        "silent"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.1
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        Ok(Answer::new(futures_util::stream::iter(self.0.clone().into_iter().map(Ok))))
    }
}

#[tokio::test]
async fn the_longest_answer_of_earlier_runs_sets_the_limit_of_the_next_ones() {
    let long = Reply::completion(Completion::new(MARIA).with_usage(Usage::new(20, 900).with_reasoning(890)));
    let model = Arc::new(Scripted::new([long]));
    let builder = Extractor::<Person>::builder().with_target(backend(&model).with_price(PRICE));
    let extractor = builder.with_shared_budget(Budget::new(money(1_000_000))).build().unwrap();
    for _ in 0..2 {
        extractor.extract(TEXT).await.unwrap();
    }
    let limits: Vec<_> = model.calls().iter().map(|call| call.max_tokens.unwrap()).collect();
    assert!((1_024..2_000).contains(&limits[0]) && limits[1] == 3_600, "{limits:?}");
}

#[tokio::test]
async fn the_amount_that_the_error_of_a_budget_names_is_the_smallest_with_which_the_call_is_made() {
    for limit in [None, Some(1_000)] {
        let with = async |micro_usd| {
            let model = Arc::new(Scripted::new([row()]));
            let mut builder = Extractor::<Person>::builder().with_target(backend(&model).with_price(PRICE));
            if let Some(limit) = limit {
                builder = builder.with_max_tokens(limit);
            }
            let extractor = builder.with_shared_budget(Budget::new(money(micro_usd))).build().unwrap();
            extractor.extract(TEXT).await
        };
        let error = with(500).await.unwrap_err().to_string();
        let (_, amount) = error.split_once("it needs at least $").unwrap();
        let (amount, _) = amount.split_once(", and $0.0005 is left").unwrap();
        let needed = (amount.parse::<f64>().unwrap() * 1e6).round() as u64;
        assert_eq!(needed > 4_000, limit.is_some(), "{error}");
        assert!(with(needed).await.is_ok() && with(needed - 1).await.is_err(), "{error}");
    }
}

#[tokio::test]
async fn money_is_settled_by_the_price() {
    let usage = Usage::new(1_000, 500);
    let reply = formwork_testkit::Reply::completion(Completion::new(MARIA).with_usage(usage));
    let model = Arc::new(Scripted::new([reply]));
    let budget = Budget::new(Cost { tokens: u64::MAX, micro_usd: Some(10_000) });
    let priced = backend(&model).with_price(Price::new(1_000_000, 4_000_000));
    let builder = formwork_extract::Extractor::<Person>::builder().with_target(priced).with_max_tokens(600);
    let outcome = builder.with_shared_budget(budget.clone()).build().unwrap().extract(TEXT).await.unwrap();
    assert_eq!((outcome.cost.micro_usd, budget.spent().micro_usd), (Some(3_000), Some(3_000)));
}

#[test]
fn a_reservation_without_a_settlement_is_spent() {
    let budget = Budget::new(tokens(100));
    drop(budget.reserve(tokens(60).min(Cost { tokens: 60, micro_usd: Some(0) })));
    assert_eq!((budget.spent().tokens, budget.remaining().tokens), (60, 40));
}

#[tokio::test]
async fn the_budget_of_one_run_is_its_own() {
    let model = Arc::new(Scripted::new(["no", "no!"]));
    let builder = persons(&model).0.with_max_attempts(2).with_max_tokens(1_000).with_budget(tokens(3_000));
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Rejected, 2));
    let builder = persons(&model).0.with_max_tokens(1_000).with_budget(tokens(900));
    let error = builder.build().unwrap().extract(TEXT).await.unwrap_err();
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Budget, 0));
}

/// One caller of the property: the budgets that it needs, its maximum and its real cost, the turns that it takes before and
/// during its call, and its end.
#[derive(Debug, Clone)]
struct Caller {
    budgets: Vec<usize>,
    worst: u64,
    real: u64,
    before: usize,
    during: usize,
    end: CallerEnd,
}

#[derive(Debug, Clone, Copy)]
enum CallerEnd {
    /// It settles the real cost.
    Settles,
    /// It is dropped during the call, so its cost is uncertain.
    Dropped,
    /// It stops waiting after this number of turns.
    Leaves(usize),
}

fn any_caller() -> impl Strategy<Value = Caller> {
    let end = prop_oneof![
        4 => Just(CallerEnd::Settles),
        1 => Just(CallerEnd::Dropped),
        1 => (0usize..20).prop_map(CallerEnd::Leaves),
    ];
    let budgets = prop::sample::subsequence(vec![0, 1, 2], 1..=3).prop_shuffle();
    (budgets, 1u64..60, 0u64..=100, 0usize..4, 0usize..6, end).prop_map(
        |(budgets, worst, share, before, during, end)| Caller {
            budgets,
            worst,
            real: worst * share / 100,
            before,
            during,
            end,
        },
    )
}

async fn turns(count: usize) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Returns whether the caller made its call; `None` if it left before.
async fn carry_out(caller: Caller, budgets: Budgets) -> Option<bool> {
    turns(caller.before).await;
    let worst = tokens(caller.worst);
    let reserved = match caller.end {
        CallerEnd::Leaves(after) => tokio::select! {
            biased;
            reserved = budgets.reserve(worst) => reserved,
            () = turns(after) => return None,
        },
        _ => budgets.reserve(worst).await,
    };
    let Ok(reservation) = reserved else { return Some(false) };
    turns(caller.during).await;
    match caller.end {
        CallerEnd::Dropped => drop(reservation),
        _ => reservation.settle(tokens(caller.real)),
    }
    Some(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn callers_of_several_budgets_all_end_and_stay_within_them(
        callers in prop::collection::vec(any_caller(), 1..24), limits in prop::collection::vec(30u64..300, 3),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let all: Vec<Budget> = limits.iter().map(|limit| Budget::new(tokens(*limit))).collect();
        let ends = runtime.block_on(async {
            let open = callers.iter().cloned().map(|caller| {
                let budgets = caller.budgets.iter().map(|nth| all[*nth].clone()).collect();
                tokio::spawn(carry_out(caller, budgets))
            });
            // The clock is virtual: the time-out passes as soon as no caller can go on.
            tokio::time::timeout(Duration::from_secs(1), futures_util::future::join_all(open)).await
        });
        let ends: Vec<_> = ends.expect("every caller ends").into_iter().map(Result::unwrap).collect();
        for (nth, (budget, limit)) in all.iter().zip(&limits).enumerate() {
            let of = |caller: &&(&Caller, &Option<bool>)| caller.0.budgets.contains(&nth) && *caller.1 == Some(true);
            let cost = |(caller, _): (&Caller, _)| match caller.end {
                CallerEnd::Dropped => caller.worst,
                _ => caller.real,
            };
            let spent: u64 = callers.iter().zip(&ends).filter(|caller| of(&caller)).map(cost).sum();
            prop_assert_eq!(budget.spent().tokens, spent);
            prop_assert_eq!(budget.remaining().tokens, limit - spent, "nothing stays reserved");
        }
        // A refused caller would not fit at the end either.
        for (caller, _) in callers.iter().zip(&ends).filter(|(_, end)| **end == Some(false)) {
            prop_assert!(caller.budgets.iter().any(|nth| all[*nth].remaining().tokens < caller.worst));
        }
    }

    #[test]
    fn callers_of_one_budget_are_served_in_order(worsts in prop::collection::vec(1u64..60, 2..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let budget = Budget::new(tokens(1_000));
        let served = runtime.block_on(async {
            let all = budget.reserve(tokens(1_000)).unwrap();
            let served = std::sync::Mutex::new(Vec::new());
            let budgets: Budgets = [budget.clone()].into_iter().collect();
            let callers = worsts.iter().enumerate().map(|(nth, worst)| {
                let (budgets, served) = (&budgets, &served);
                async move {
                    let reservation = budgets.reserve(tokens(*worst)).await.unwrap();
                    served.lock().unwrap().push(nth);
                    reservation.settle(tokens(0));
                }
            });
            let open = async {
                turns(3).await;
                assert!(budget.reserve(tokens(0)).is_none(), "a later caller does not overtake");
                all.settle(tokens(0));
            };
            tokio::join!(futures_util::future::join_all(callers), open);
            served.into_inner().unwrap()
        });
        prop_assert_eq!(served, (0..worsts.len()).collect::<Vec<_>>());
    }
}
