//! The share of leaves with their known place in generated documents.

use super::documents::{Document, Random, invoice, letter, prose};

fn share(kind: &str, generate: fn(&mut Random) -> Document) -> f64 {
    let mut random = Random(20_240_305);
    let scores = (0..200).map(|_| generate(&mut random).score(kind));
    let (right, all) = scores.fold((0, 0), |sum, score| (sum.0 + score.0, sum.1 + score.1));
    let share = right as f64 / all as f64;
    println!("{kind}: {right} of {all}, {:.2} %", 100.0 * share);
    share
}

#[test]
fn leaves_of_generated_documents_have_their_place() {
    for (kind, generate) in
        [("invoice", invoice as fn(&mut Random) -> Document), ("letter", letter), ("prose", prose)]
    {
        assert!(share(kind, generate) >= 0.95, "{kind}");
    }
}
