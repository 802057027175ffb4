//! Names of users, from the system's password file alone: a look-up must never wait for a network.

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// The name of a user, or the number where it has none.
pub(crate) fn user_name(uid: u32) -> String {
    let text = std::fs::read_to_string(PASSWD).unwrap_or_default();
    entries(&text).find(|(_, id)| *id == uid).map_or_else(|| uid.to_string(), |(name, _)| name.to_owned())
}

/// The number of a user who is given by name or number.
pub(crate) fn user_id(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(PASSWD).unwrap_or_default();
    name.parse().ok().or_else(|| entries(&text).find(|(n, _)| *n == name).map(|(_, id)| id))
}

/// The number of a group that is given by name or number.
pub(crate) fn group_id(name: &str) -> Option<u32> {
    let text = std::fs::read_to_string(GROUP).unwrap_or_default();
    name.parse().ok().or_else(|| entries(&text).find(|(n, _)| *n == name).map(|(_, id)| id))
}

/// The name of a group, or the number where it has none.
pub(crate) fn group_name(gid: u32) -> String {
    let text = std::fs::read_to_string(GROUP).unwrap_or_default();
    entries(&text).find(|(_, id)| *id == gid).map_or_else(|| gid.to_string(), |(name, _)| name.to_owned())
}

/// The numbers of users or groups; the error is the first unknown name.
pub(crate) fn ids(names: &[String], id: impl Fn(&str) -> Option<u32>) -> Result<Vec<u32>, String> {
    names.iter().map(|name| id(name).ok_or_else(|| name.clone())).collect()
}

/// The primary group of a user.
pub(crate) fn group_of(uid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(PASSWD).unwrap_or_default();
    passwd_line(&text, uid).and_then(|mut fields| fields.nth(3)?.parse().ok())
}

/// All groups of a user, the primary one first.
pub(crate) fn groups_of(uid: u32) -> Option<Vec<u32>> {
    let passwd = std::fs::read_to_string(PASSWD).unwrap_or_default();
    let name = passwd_line(&passwd, uid)?.next()?;
    let groups = std::fs::read_to_string(GROUP).unwrap_or_default();
    Some(std::iter::once(group_of(uid)?).chain(memberships(&groups, name)).collect())
}

fn passwd_line(passwd: &str, uid: u32) -> Option<std::str::Split<'_, char>> {
    let of = |line: &&str| line.split(':').nth(2).is_some_and(|field| field.parse() == Ok(uid));
    passwd.lines().find(of).map(|line| line.split(':'))
}

/// The groups that list this name as a member.
fn memberships(groups: &str, name: &str) -> Vec<u32> {
    let of = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let gid = fields.next()?.parse().ok()?;
        fields.next()?.split(',').any(|member| member == name).then_some(gid)
    };
    groups.lines().filter_map(of).collect()
}

fn entries(passwd: &str) -> impl Iterator<Item = (&str, u32)> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        Some((fields.next()?, fields.nth(1)?.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read() {
        let text = "root:x:0:0:root:/root:/bin/bash\nbroken\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(entries(text).collect::<Vec<_>>(), [("root", 0), ("ann", 1000)]);
        assert_eq!(user_name(0), "root");
        assert_eq!(user_id("root"), Some(0));
        assert_eq!((group_id("root"), group_id("12"), group_name(0).as_str()), (Some(0), Some(12), "root"));
        let names = ["root", "4711", "nobody of this name"].map(str::to_owned);
        assert_eq!(ids(&names[..2], user_id), Ok(vec![0, 4711]));
        assert_eq!(ids(&names, user_id), Err(names[2].clone()));
        assert_eq!(group_of(0), Some(0));
        assert_eq!(groups_of(0).map(|groups| groups[0]), Some(0));
        assert_eq!(memberships("audio:x:29:bob,ann\nann:x:1000:\nann2:x:1001:annette\n", "ann"), [29]);
        assert_eq!(user_id("4711"), Some(4711));
        assert_eq!(user_name(4_000_000_001), "4000000001");
    }
}
