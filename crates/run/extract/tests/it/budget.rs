use std::sync::Arc;

use formwork_core::*;
use formwork_extract::Budget;
use formwork_testkit::Scripted;
use tokio::sync::Semaphore;

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
async fn two_runs_share_one_budget() {
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
        model.1.add_permits(1);
    };
    let (first, second, ()) = tokio::join!(extractor.extract(TEXT), extractor.extract(TEXT), open());
    assert_eq!(first.unwrap().usage, usage);
    let second = second.unwrap_err();
    assert_eq!((second.kind(), second.calls().len()), (ErrorKind::Budget, 0));
    assert_eq!((budget.spent().tokens, budget.remaining().tokens), (40, 1_460));

    // The unused part of the reservation is available again.
    model.1.add_permits(1);
    assert_eq!(extractor.extract(TEXT).await.unwrap().value, maria());
    assert_eq!(budget.spent().tokens, 80);
}

#[tokio::test]
async fn money_is_settled_by_the_price() {
    let usage = Usage::new(1_000, 500);
    let reply = formwork_testkit::Reply::completion(Completion::new(MARIA).with_usage(usage));
    let model = Arc::new(Scripted::new([reply]));
    let budget = Budget::new(Cost { tokens: u64::MAX, micro_usd: Some(10_000) });
    let priced = backend(&model).with_price(Price { input: 1_000_000, output: 4_000_000 });
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
