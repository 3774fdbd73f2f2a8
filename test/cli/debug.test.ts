import { expect } from 'chai';
import { stateChart } from '../../src/cli/show/explain-actor.ts';
import { DefinitionRefused } from '../../src/contracts/sandbox-driver.ts';
import type { ShardReport } from '../../src/services/debug/debug-operations.ts';
import { anActorView, FakeDebug } from '../support/fakes/fake-debug.ts';
import { onACliDaemon } from './cli-support.ts';

describe('the debug commands', () => {
  const { daemon, sandpool } = onACliDaemon();

  let debug: FakeDebug;
  beforeEach(() => {
    debug = new FakeDebug();
    Object.assign(daemon().operations, debug, { shards: twoReplicas });
  });

  it('show the state of an actor, its reason and its history', async () => {
    const { code, stdout, stderr } = await sandpool('debug', 'sandbox', 'k', '--admin');

    expect([code, stderr]).to.deep.equal([0, '']);
    expect(stdout)
      .to.match(/^sandbox: +sb-k\nkey: +k\nstate: +idle\.available\n/)
      .and.match(/led by: +one \(shard 3, epoch 2\)/);
    for (const line of [
      'Why:\n  it is ready\n',
      '▶ idle\n',
      '▶   available\n',
      'CLAIM [unsteady] → claiming.writing\n',
      '  the next evaluation, in 500ms\n',
      '  claim, for 5ms\n',
      '  state: the actor has "idle", the record "claimed"\n',
      'FOUND  the driver reported it  idle.available  -',
    ]) {
      expect(stdout).to.include(line);
    }
  });

  it('show that a sandbox is paused', async () => {
    const view = anActorView({ status: 'Running', paused: true });
    Object.assign(daemon().operations, { getActor: async () => view });

    const { stdout } = await sandpool('debug', 'sandbox', 'k', '--admin');

    expect(stdout).to.match(/^status: +Running, paused$/m);
  });

  it("print the service's own answer as JSON", async () => {
    const { stdout } = await sandpool('debug', 'sandbox', 'k', '--admin', '-o', 'json');

    expect(JSON.parse(stdout)).to.deep.include({
      kind: 'sandbox',
      key: 'k',
      leader: { shard: 3, replica: 'one', epoch: 2 },
    });
  });

  it("follow an actor's moves until its end, and show whose view they are", async () => {
    const { code, stdout, stderr } = await sandpool('debug', 'sandbox', 'k', '-f', '--admin');

    expect(code).to.equal(0);
    expect(stdout)
      .to.match(/^sandbox: +sb-k\n/)
      .and.match(
        /\n1970-01-01T00:00:01Z {2}FOUND {2}the driver reported it {2}idle\.available {2}-\n$/,
      );
    expect(stderr.split('\n')).to.deep.equal([
      'sandpool: seen by two (no replica leads it now)',
      'sandpool: some transitions may be missing here',
      'sandpool: it is gone',
      '',
    ]);
    const lines = (await sandpool('debug', 'sandbox', 'k', '-f', '--admin', '-o', 'json')).stdout;
    expect(JSON.parse(lines)).to.include({ number: 1, event: 'FOUND', to: 'idle.available' });
    expect((await sandpool('debug', 'sandbox', 'x', '-f', '--admin')).stderr).to.include(
      'there is no such actor',
    );
  });

  it('ask for members and groups by env and name', async () => {
    await sandpool('debug', 'member', 'team-blue/shop', 'web', '--admin');
    await sandpool('debug', 'group', 'shop', 'web', '--admin');

    expect(debug.asked).to.deep.equal([
      { kind: 'member', text: 'team-blue/shop/web' },
      { kind: 'group', text: 'shop/web' },
    ]);
  });

  it('report a missing actor, and a caller without access', async () => {
    expect((await sandpool('debug', 'pool', 'x', '--admin')).code).to.equal(1);
    expect((await sandpool('debug', 'pool', 'x', '--admin')).stderr).to.include(
      'there is no such actor',
    );
    expect((await sandpool('debug', 'sandbox', 'k')).stderr).to.include('admin');
  });

  it('list replicas with the shards that they lead', async () => {
    const { code, stdout } = await sandpool('replicas', '--admin', '-o', 'wide');

    expect(code).to.equal(0);
    expect(stdout.split('\n').map((line) => line.split(/\s+/))).to.deep.include.members([
      ['one', '1', '9', '4', '3:2'],
      ['two', '1', '9', '4', '3:2'],
    ]);
  });

  it('show one page of the busiest pools if the output is not a terminal', async () => {
    const { code, stdout } = await sandpool('top', '--admin');

    expect(code).to.equal(0);
    expect(stdout)
      .to.match(/^1 pool, 2 replicas; 8 claims wait, 18 effects are under way\n\nPOOL +NAMESPACE/)
      .and.match(/\ndefault +\S+ +\S+ +2 +0 +0 +0\n/);
  });

  it('show only the broken pools, with the reason', async () => {
    expect((await sandpool('top', '--broken', '--admin')).stdout).to.match(/^0 broken pools, /);
    const { driver, settled, supervisor } = daemon().operations;
    for (let start = 0; start < 9; start += 1)
      driver.failNext('launch', new DefinitionRefused('no such image'));
    driver.end(supervisor.ids()[0]!);
    await settled();

    const { code, stdout } = await sandpool('top', '--broken', '--admin');
    expect(code).to.equal(0);
    expect(stdout)
      .to.match(/^1 broken pool, 2 replicas; /)
      .and.match(/\nPOOL +NAMESPACE .* CAUSE\n/)
      .and.match(/\ndefault +\S+ +Degraded .* StartsFail: no such image\n/);
    const listed = await sandpool('pools', 'list', '--phase', 'Degraded', '--all', '--admin');
    expect(listed.stdout).to.match(/\ndefault +Degraded /);
    expect(
      (await sandpool('pools', 'list', '--phase', 'Failed', '--all', '--admin', '-o', 'json'))
        .stdout,
    ).to.include('"total": 0');
  });

  it('mark each region of a parallel state', () => {
    const state = (
      path: string,
      ways: readonly { readonly event?: string; readonly to?: string }[] = [],
    ) => ({
      path,
      type: 'atomic' as const,
      count: 0,
      onEntry: [],
      ways: ways.map((way) => ({ ...way, actions: [] })),
    });
    const states = [
      state(''),
      state('scale'),
      state('scale.short', [{ event: 'MOVED', to: 'scale.settled' }, { event: 'STAYED' }]),
      state('scale.settled'),
      state('breaker'),
      state('breaker.open'),
    ];

    expect(stateChart({ states }, 'scale.short breaker.open')).to.equal(
      '▶ scale\n▶   short\n        MOVED → scale.settled\n    settled\n▶ breaker\n▶   open\n',
    );
  });
});

const twoReplicas = (): ShardReport => ({
  replica: 'one',
  replicas: ['one', 'two'],
  shards: [
    { shard: 0, leading: true, replica: 'one' },
    { shard: 1, leading: false, replica: 'two' },
    { shard: 2, leading: false },
  ],
});
