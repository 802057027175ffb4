//! Limits of a process that no cgroup of a job can keep: I/O, huge pages, devices, RDMA.
//!
//! These limits are set for a device or a page size, and for all processes of a cgroup together, so a job cannot take them along. The daemon refuses
//! such a process (decision 0037). Weights are not limits. On v2 the devices that a cgroup may open are decided by a program in the kernel, which has
//! no text to read.
//! Source: Documentation/admin-guide/cgroup-v2.rst (io.max, hugetlb, rdma.max); cgroup-v1/blkio-controller.rst, hugetlb.rst, devices.rst.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::cgfile;

/// Without a limit on a page size, v1 shows at least this: the largest number of pages, in bytes.
const NO_LIMIT: u64 = 1 << 62;

/// A limit, and the cgroup that sets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unkept {
    what: &'static str,
    /// The first line of the file that is a limit.
    line: String,
    file: String,
    of: PathBuf,
}

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} of {})", self.what, self.line, self.file, self.of.display())
    }
}

/// The sizes of this machine's huge pages, as in the names of cgroups' files.
pub(crate) fn page_sizes() -> Vec<String> {
    let found = std::fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    let kib = |name: &str| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok();
    found.filter_map(|dir| kib(dir.file_name().to_str()?)).map(page_size).collect()
}

fn page_size(kib: u64) -> String {
    match kib {
        0..1024 => format!("{kib}KB"),
        1024..0x10_0000 => format!("{}MB", kib >> 10),
        _ => format!("{}GB", kib >> 20),
    }
}

/// The limiting part of a file's content, in words.
type Limit = fn(&str) -> Option<&str>;

/// The limits of this kind on the cgroup `dir`, in v2 or by a v1 controller that is mounted there.
pub(crate) fn unkept_in(dir: &Path, relative: &Path, page_sizes: &[String]) -> Vec<Unkept> {
    let pages = page_sizes.iter().flat_map(|size| {
        let ends = ["max", "rsvd.max", "limit_in_bytes", "rsvd.limit_in_bytes"];
        ends.map(|end| ("huge pages", format!("hugetlb.{size}.{end}"), pages as Limit))
    });
    let throttle = ["read_bps", "write_bps", "read_iops", "write_iops"]
        .map(|kind| ("I/O", format!("blkio.throttle.{kind}_device"), any as Limit));
    let others: [(_, _, Limit); 3] = [
        ("I/O", "io.max".to_owned(), keyed),
        ("RDMA", "rdma.max".to_owned(), keyed),
        ("devices", "devices.list".to_owned(), devices),
    ];
    let found = pages.chain(throttle).chain(others).filter_map(|(what, file, limit)| {
        let text = cgfile::read(&dir.join(&file)).ok()?;
        let line = limit(text.trim())?.to_owned();
        Some(Unkept { what, line, file, of: relative.to_path_buf() })
    });
    found.collect()
}

fn pages(text: &str) -> Option<&str> {
    text.parse().is_ok_and(|bytes: u64| bytes < NO_LIMIT).then_some(text)
}

fn keyed(text: &str) -> Option<&str> {
    let limits = |line: &&str| line.split_whitespace().filter_map(|word| word.split_once('=')).any(|of| of.1 != "max");
    text.lines().find(limits)
}

fn any(text: &str) -> Option<&str> {
    text.lines().next()
}

fn devices(text: &str) -> Option<&str> {
    match text {
        "a *:* rwm" => None,
        "" => Some("none"),
        _ => any(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_limits_is_told_and_what_does_not_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
        let sizes = [2048, 1 << 20, 64].map(page_size);
        assert_eq!(sizes, ["2MB", "1GB", "64KB"]);
        let told = || -> Vec<String> {
            unkept_in(dir.path(), Path::new("/box"), &sizes).iter().map(ToString::to_string).collect()
        };
        assert!(told().is_empty());
        put("io.max", "8:0 rbps=max wbps=max riops=max wiops=max\n");
        put("rdma.max", "mlx4_0 hca_handle=max hca_object=max\n");
        put("hugetlb.2MB.max", "max\n");
        put("hugetlb.1GB.limit_in_bytes", "9223372036854771712\n");
        put("blkio.throttle.read_bps_device", "");
        put("devices.list", "a *:* rwm\n");
        assert!(told().is_empty(), "{:?}", told());
        put("io.max", "8:16 rbps=max wbps=max riops=max wiops=max\n8:0 rbps=1048576 wbps=max riops=max wiops=max\n");
        put("rdma.max", "mlx4_0 hca_handle=2 hca_object=max\n");
        put("hugetlb.2MB.rsvd.max", "4194304\n");
        put("hugetlb.1GB.limit_in_bytes", "0\n");
        put("blkio.throttle.write_iops_device", "8:0 100\n");
        put("devices.list", "\n");
        assert!(told().contains(&"devices none (devices.list of /box)".to_owned()), "{:?}", told());
        put("devices.list", "c 1:3 rwm\nc 1:5 rwm\n");
        assert_eq!(
            told(),
            [
                "huge pages 4194304 (hugetlb.2MB.rsvd.max of /box)",
                "huge pages 0 (hugetlb.1GB.limit_in_bytes of /box)",
                "I/O 8:0 100 (blkio.throttle.write_iops_device of /box)",
                "I/O 8:0 rbps=1048576 wbps=max riops=max wiops=max (io.max of /box)",
                "RDMA mlx4_0 hca_handle=2 hca_object=max (rdma.max of /box)",
                "devices c 1:3 rwm (devices.list of /box)",
            ]
        );
    }
}
