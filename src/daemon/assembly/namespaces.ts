/** Replaces {team} in the pattern. */

export const namespaceOf = (pattern: string, team: string): string =>
  pattern.replaceAll('{team}', team);

export const teamOf = (pattern: string, namespace: string): string | undefined => {
  const at = pattern.indexOf('{team}');
  const [before, after] = [pattern.slice(0, at), pattern.slice(at + '{team}'.length)];
  if (!namespace.startsWith(before)) return undefined;
  // The pattern may contain {team} more than once, so try each length.
  for (let length = 1; length <= namespace.length - before.length; length += 1) {
    const team = namespace.slice(before.length, before.length + length);
    if (before + team + after.replaceAll('{team}', team) === namespace) return team;
  }
  return undefined;
};

const MOST_REMEMBERED = 10_000;

export const teamsOf = (pattern: string): ((namespace: string) => string | undefined) => {
  const known = new Map<string, string | undefined>();
  return (namespace) => {
    if (known.has(namespace)) return known.get(namespace);
    const team = teamOf(pattern, namespace);
    if (known.size >= MOST_REMEMBERED) known.clear();
    known.set(namespace, team);
    return team;
  };
};
