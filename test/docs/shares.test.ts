import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

const textOf = (path: string): string =>
  readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** The figures of a row, by its first words; thousands without their comma. */
const figuresOf = (what: string): readonly number[] => {
  const row = textOf('docs/shares.md')
    .split('\n')
    .find((line) => line.startsWith(`| ${what}`));
  if (row === undefined) throw new Error(`no row for ${what}`);
  const [, , tenant = '', all = ''] = row.split('|');
  return [...`${tenant} ${all}`.matchAll(/\d[\d,]*/g)].map(([figure]) =>
    Number(figure.replaceAll(',', '')),
  );
};

const constant = (path: string, name: string): number => {
  const [, value] = new RegExp(`const ${name} = ([\\d_]+);`).exec(textOf(path)) ?? [];
  if (value === undefined) throw new Error(`${path} has no ${name}`);
  return Number(value.replaceAll('_', ''));
};

const ROWS: Readonly<Record<string, readonly (readonly [path: string, name: string])[]>> = {
  'Requests and streams to one other cluster': [
    ['src/fleet/routing/pass-on.ts', 'MOST_OF_TENANT'],
    ['src/fleet/routing/pass-on.ts', 'MOST_OF_LINK'],
  ],
  "Requests of a fleet's manager": [
    ['src/fleet/link/cluster-client.ts', 'MOST_OF_TENANT'],
    ['src/fleet/link/cluster-client.ts', 'MOST_WAITING_OF_TENANT'],
    ['src/fleet/link/cluster-client.ts', 'MOST_OF_CLUSTER'],
    ['src/fleet/link/cluster-client.ts', 'MOST_WAITING'],
  ],
  'Commands in progress': [
    ['src/actors/sandbox/commands/exec-in-sandbox.ts', 'MOST_COMMANDS_OF_TENANT'],
    ['src/actors/sandbox/commands/exec-in-sandbox.ts', 'MOST_COMMANDS'],
    ['src/embedded/spawner/session.ts', 'CHANNEL_LIMIT'],
  ],
  'Live processes on one machine': [
    ['src/embedded/spawner/processes/holders.ts', 'MOST_LIVE_OF_TENANT'],
    ['src/embedded/spawner/processes/bounds.ts', 'LIVE_PROCESSES'],
    ['src/embedded/spawner/processes/holders.ts', 'MOST_LIVE'],
  ],
  'Starts and inputs of processes': [
    ['src/services/processes/calls-under-way.ts', 'MOST_CALLS_OF_TENANT'],
    ['src/services/processes/calls-under-way.ts', 'MOST_CALLS'],
  ],
  'Readers of processes': [
    ['src/services/processes/follow-process.ts', 'MOST_READERS_OF_TENANT'],
    ['src/services/processes/follow-process.ts', 'MOST_READERS'],
  ],
  'Answers of Pods': [
    ['src/k8s/streams/gathered-bytes.ts', 'MOST_OF_NAMESPACE_MIB'],
    ['src/k8s/streams/gathered-bytes.ts', 'MOST_MIB'],
  ],
  'Starts for one claim each': [
    ['src/actors/claim/launched-candidate.ts', 'MOST_LAUNCHES_OF_TENANT'],
    ['src/actors/claim/launched-candidate.ts', 'MOST_LAUNCHES'],
  ],
  'Unused terminal tokens': [
    ['src/contracts/tokens.ts', 'MAX_TOKENS_OF_TENANT'],
    ['src/contracts/tokens.ts', 'MAX_TOKENS_OF_SANDBOX'],
    ['src/contracts/tokens.ts', 'MAX_TOKENS'],
  ],
  'Connections to endpoints': [
    ['src/actors/sandbox/commands/open-endpoint.ts', 'MOST_OF_TENANT'],
    ['src/actors/sandbox/commands/open-endpoint.ts', 'MOST_OF_SANDBOX'],
  ],
  'Event streams': [['src/actors/sandbox/commands/follow-events.ts', 'MOST_STREAMS_OF_TENANT']],
  'Followed logs': [
    ['src/actors/sandbox/commands/sandbox-logs.ts', 'MOST_FOLLOWERS_OF_TENANT'],
    ['src/actors/sandbox/commands/sandbox-logs.ts', 'MOST_FOLLOWERS'],
  ],
  'Waiting claims': [
    ['src/actors/claim/waiting-claim-limit.ts', 'MOST_WAITING_OF_TENANT'],
    ['src/contracts/coordination/claims.ts', 'MAX_WAITING_OF_POOL'],
    ['src/actors/claim/waiting-claim-limit.ts', 'MOST_WAITING'],
  ],
  'Starts on one machine': [
    ['src/embedded/spawner/sandbox/instances.ts', 'MOST_WAITING_OF_TENANT'],
    ['src/embedded/spawner/sandbox/instances.ts', 'MOST_WAITING'],
  ],
  'Starts on Kubernetes': [
    ['src/k8s/sandboxes/pods/pod-creator.ts', 'MOST_AT_ONCE_OF_TENANT'],
    ['src/k8s/sandboxes/pods/pod-creator.ts', 'MOST_WAITING_OF_TENANT'],
    ['src/k8s/sandboxes/pods/pod-creator.ts', 'MOST_AT_ONCE'],
    ['src/k8s/sandboxes/pods/pod-creator.ts', 'MOST_WAITING'],
  ],
  'Ends of unclaimed instances': [
    ['src/actors/sandbox/retirement-limiter.ts', 'SHARE_OF_NAMESPACE'],
    ['src/actors/sandbox/retirement-limiter.ts', 'MOST'],
  ],
  'API keys': [
    ['src/services/keys/api-keys.ts', 'MAX_KEYS_PER_TENANT'],
    ['src/services/keys/api-keys.ts', 'MAX_KEYS'],
  ],
  'Tokens that the daemon tries for signed links': [
    ['src/services/keys/signed-links.ts', 'TRIED_FROM_ADDRESS'],
    ['src/services/keys/signed-links.ts', 'TRIED_PER_SECOND'],
  ],
  'Audit lines about refusals': [['src/services/audit/minute-lines.ts', 'MOST_A_MINUTE']],
};

describe('the page on shares', () => {
  for (const [what, constants] of Object.entries(ROWS))
    it(`shows the limits of the code for ${what}`, () => {
      expect(figuresOf(what)).to.deep.equal(constants.map(([path, name]) => constant(path, name)));
    });

  it('shows the limits of the code for readiness probes', () => {
    const path = 'src/embedded/spawner/probes/probe-runner.ts';
    expect(figuresOf('Readiness probes')).to.deep.equal([
      constant(path, 'AT_ONCE_OF_TENANT'),
      constant(path, 'LONGEST_MS') / 1_000,
      constant(path, 'AT_ONCE'),
    ]);
  });

  it('shows the defaults of the settings that it names', () => {
    const { connections, history, keptAnswers, limits, logs } = parse(
      textOf('config/default.yaml'),
    );
    const bytes = (text: string) =>
      figuresOf(text).map((figure) => (figure < 16 ? figure * 2 ** 30 : figure * 2 ** 20));
    expect(figuresOf('Connections, by address')).to.deep.equal([
      connections.mostPerAddress,
      connections.most,
    ]);
    expect(bytes('History')).to.deep.equal([history.tenantBytes, history.totalBytes]);
    expect(bytes('Stored answers')).to.deep.equal([
      keptAnswers.tenantBytes,
      keptAnswers.totalBytes,
    ]);
    expect(bytes('Logs of ended sandboxes')).to.deep.equal([logs.totalBytes]);
    expect(figuresOf('Open terminals')[0]).to.equal(limits.terminalsOfTenant);
  });
});
