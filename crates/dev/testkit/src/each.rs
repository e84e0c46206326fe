/// Runs a test for each item at the same time, each on a thread of its own, and returns the results in the order of the items.
///
/// The last long test of a program then uses all cores.
///
/// ```
/// assert_eq!(formwork_testkit::each([1, 2, 3], |number| number * 2), [2, 4, 6]);
/// ```
///
/// # Panics
/// The panic of a test is passed on, the first in the order of the items.
pub fn each<T: Send, R: Send>(items: impl IntoIterator<Item = T>, test: impl Fn(T) -> R + Sync) -> Vec<R> {
    let test = &test;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || test(item))).collect();
        let result = |thread: std::thread::ScopedJoinHandle<'_, R>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(result).collect()
    })
}
