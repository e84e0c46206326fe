//! A slow provider.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use formwork_core::{
    Answer, Call, Capabilities, Delta, End, Fault, FaultKind, Finish, Lowered, Message, Provider, Sampling,
    Usage,
};
use futures_util::stream;
use tokio::time::sleep;

/// Waits, then answers in pieces with a delay before each.
#[derive(Debug, Default)]
pub(crate) struct Slow {
    pub(crate) before: Duration,
    pub(crate) pieces: Vec<Duration>,
    pub(crate) fails: bool,
    pub(crate) running: Arc<AtomicUsize>,
    pub(crate) most: Arc<AtomicUsize>,
    pub(crate) capabilities: Capabilities,
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

struct Running(Arc<AtomicUsize>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Provider for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn call(&self, _: &Call) -> Result<Answer, Fault> {
        let now = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        let running = Running(self.running.clone());
        sleep(self.before).await;
        if self.fails {
            return Err(Fault::new(FaultKind::Overloaded, "too much"));
        }
        let end = Delta::End(End::new(Finish::Stop, Usage::new(5, 3)).with_model(Some("slow-1".to_owned())));
        let pieces = self.pieces.iter().map(|wait| (*wait, Delta::Text("x".to_owned())));
        let pieces: Vec<_> = pieces.chain([(Duration::ZERO, end)]).collect();
        Ok(Answer::new(Box::pin(stream::unfold(
            (pieces.into_iter(), running),
            |(mut pieces, running)| async {
                let (wait, piece) = pieces.next()?;
                sleep(wait).await;
                Some((Ok(piece), (pieces, running)))
            },
        ))))
    }

    async fn probe(&self) -> Result<Capabilities, Fault> {
        sleep(self.before).await;
        Ok(self.capabilities.clone())
    }
}

pub(crate) fn call() -> Call {
    Call::new(vec![Message::user("secret text")], Lowered::default())
        .with_sampling(Sampling::default().with_temperature(0.3))
        .with_max_tokens(64)
}
