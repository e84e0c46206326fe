//! Mistakes that are made on purpose, so that the bench and the soak are seen to notice them.
//!
//! A mistake is named by an environment variable, which all processes of a run inherit.

/// The variable.
pub(in crate::bench) const VARIABLE: &str = "FORMWORK_BENCH_PLANT";

/// Returns whether this mistake is made.
pub(super) fn is_planted(name: &str) -> bool {
    std::env::var(VARIABLE).is_ok_and(|planted| planted == name)
}

/// Burns CPU in the gateway's process (`slow`), or takes memory that is never given back (`leak`).
pub(super) fn start() {
    if is_planted("slow") {
        // So many threads that the service waits for its CPU as well, however busy the machine is.
        for _ in 0..32 {
            std::thread::spawn(|| {
                loop {
                    std::hint::spin_loop();
                }
            });
        }
    }
    if is_planted("leak") {
        std::thread::spawn(|| {
            let mut kept: Vec<Vec<u8>> = Vec::new();
            loop {
                kept.push(vec![1; 256 << 10]);
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        });
    }
}
