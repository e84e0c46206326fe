//! Probes are calls: their tokens come with the first answer, apart from its own, once.

use std::sync::Arc;

use formwork::core::{Call, Completion, Enforcement, Lowered, Message, Usage};
use formwork::providers::{Made, Probe, Probed};
use formwork_testkit::{Reply, Scripted};

#[tokio::test]
async fn the_tokens_of_a_probe_are_counted_once_and_apart() {
    let own = Usage::new(900, 40).with_cached(80);
    for spent in [Usage::default(), Usage::new(30, 6), Usage::new(0, 250)] {
        let answer = || Reply::completion(Completion::new("{}").with_usage(own));
        let provider = Arc::new(Scripted::new([answer(), answer(), answer()]));
        let inner = Arc::clone(&provider);
        let probe = Probe::new(move |_| {
            let provider = Arc::clone(&inner);
            async move { Ok(Probed { provider, notes: Vec::new(), usage: spent }) }
        });
        let made = Made::new(provider, "acme", "a-1").with_probe(probe).probed().await;
        let call = Call::new(Vec::<Message>::new(), Lowered::new(Enforcement::None, None));
        let mut used = Vec::new();
        for _ in 0..3 {
            used.push(made.provider.call(&call).await.unwrap().collect().await.unwrap());
        }
        assert!(used.iter().all(|answer| answer.usage == own), "{used:?}");
        let probes: Vec<_> = used.iter().map(|answer| answer.probe.as_deref().copied()).collect();
        assert_eq!(probes, [Some(spent).filter(|spent| *spent != Usage::default()), None, None]);
    }
}
