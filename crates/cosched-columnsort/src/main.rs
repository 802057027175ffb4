//! x
use cosched_columnsort::{format::Format, layout::Held, sort::*};
fn main() {
    let n = 1_000_000usize;
    let f = Format::default();
    let mut b = vec![0u8; n * 100];
    let mut s = 88172645463325252u64;
    for r in b.chunks_mut(8) { s ^= s << 13; s ^= s >> 7; s ^= s << 17; r.copy_from_slice(&s.to_ne_bytes()[..r.len()]); }
    let mut order = vec![0u8; n * 4];
    let held = [Held { at: 0, count: n }];
    for v in [Version::Io, Version::Compute] { for t in [1, 2] {
        let mut so = Sorter::new(f, v, t);
        let mut c = b.clone();
        so.sort(&mut c, &held, &mut order);
        if v == Version::Compute { c.copy_from_slice(&b); }
        let t0 = std::time::Instant::now();
        so.sort(&mut c, &held, &mut order);
        println!("{v:?} {t}: {:.1} ns/record", t0.elapsed().as_nanos() as f64 / n as f64);
    }}
    let mut so = Sorter::new(f, Version::Io, 1);
    so.sort(&mut b, &held, &mut order);
    let mut out = vec![0u8; n*100];
    for _ in 0..3 {
    let t0 = std::time::Instant::now();
    for (i, o) in out.as_chunks_mut::<100>().0.iter_mut().enumerate() { let p = place(&order, i); *o = b[p..].first_chunk::<100>().unwrap().clone(); }
    println!("gather {:.1} ns/record", t0.elapsed().as_nanos() as f64 / n as f64);
    let t0 = std::time::Instant::now();
    for (k, o) in out.as_chunks_mut::<100>().0.iter_mut().enumerate() { let i = (k / 15625) + (k % 15625) * 64; let p = place(&order, i); *o = b[p..].first_chunk::<100>().unwrap().clone(); }
    println!("gather strided {:.1} ns/record", t0.elapsed().as_nanos() as f64 / n as f64);
    let t0 = std::time::Instant::now();
    for i in 0..n { let p = place(&order, i); out[i*100..i*100+f.record_bytes].copy_from_slice(&b[p..p+f.record_bytes]); }
    println!("gather var {:.1} ns/record", t0.elapsed().as_nanos() as f64 / n as f64);
    }
}
