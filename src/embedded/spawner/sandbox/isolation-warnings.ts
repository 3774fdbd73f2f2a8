import type { SpawnerConfig } from '../protocol.ts';

export const isolationWarnings = ({
  isolation,
  hasUids,
  someBare,
}: {
  readonly isolation: SpawnerConfig['isolation'] | undefined;
  readonly hasUids: boolean;
  readonly someBare: boolean;
}): readonly string[] => {
  const own = hasUids ? [] : [ONE_UID];
  if (isolation === 'none') return [BARE, ...(hasUids ? [] : [BARE_UNDER_OWN_UID]), ...own];
  return someBare ? [SOME_BARE, ...own] : own;
};

const ONE_UID = "not started by root: all sandboxes run under the same host uid, the daemon's own";
const BARE =
  'sandboxes are not isolated (isolation: none): they are plain processes of this machine, ' +
  'which see its files, its network and one another, and leave behind files outside of ' +
  'their home; only for trials';
const BARE_UNDER_OWN_UID =
  "sandboxes can read the daemon's keys and end the daemon (isolation: none with its own " +
  'uid), and a process that hides may outlive its sandbox';
const SOME_BARE =
  'some sandboxes are not isolated: they were started with isolation: none, and run until ' +
  'they are ended';
