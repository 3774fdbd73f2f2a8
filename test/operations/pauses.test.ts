import { expect } from 'chai';
import type { InspectedKinds } from '../../src/actors/inspection/inspected-actors.ts';
import { inspectedSandboxes } from '../../src/actors/inspection/sandbox-actors.ts';
import { NotJoinable } from '../../src/contracts/sandbox-driver.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { execInSandbox } from '../../src/actors/sandbox/commands/exec-in-sandbox.ts';
import { isReady } from '../../src/actors/sandbox/commands/is-ready.ts';
import { endpointOperations } from '../../src/actors/sandbox/commands/open-endpoint.ts';
import { listActors } from '../../src/services/debug/list-actors.ts';
import { setSandboxState } from '../../src/actors/sandbox/commands/set-sandbox-state.ts';
import { alice, aSupervisor } from '../support/harness/a-supervisor.ts';
import { eventually } from '../support/harness/eventually.ts';
import { rejection } from '../support/harness/rejection.ts';

const TRUE = { argv: ['true'], timeoutMs: 1_000, outputLimit: 10 };
const IDLE_MS = 60_000;

describe('a paused sandbox', () => {
  const claimed = async (part: object = {}) => {
    const world = await aSupervisor({ pool: { replicas: 1 } });
    const { supervisor, pool, claim } = world;
    await eventually(() => supervisor.pools.get(pool.uid)?.counts.idle === 1, 'one is idle');
    const request = { poolName: 'default', idleTimeoutMs: IDLE_MS, ...part };
    const { id } = await claim(alice, request);
    const set = (state: 'paused' | 'running') => setSandboxState(world)(alice, id, state);
    const exec = () =>
      execInSandbox(world)(alice, id, { request: TRUE, signal: new AbortController().signal });
    const record = async () => (await world.driver.read(id)).record;
    return { ...world, id, set, exec, record };
  };
  const refused = async (call: unknown): Promise<Refusal> => {
    const error = await rejection(Promise.resolve(call));
    expect(error).to.be.instanceOf(Refusal);
    return error as Refusal;
  };

  it('stays Running, durably, until it resumes', async () => {
    const { set, record, clock, supervisor, id } = await claimed();
    const view = await set('paused');

    expect(view).to.include({ status: 'Running', paused: true, idleExpiresAt: undefined });
    expect((await record())?.claim?.pausedAt).to.equal(clock.now());
    expect((await set('paused')).paused, 'again').to.equal(true);
    const after = await set('running');
    expect(after).to.not.have.property('paused');
    expect((await record())?.claim).to.not.have.property('pausedAt');
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
  });

  it('is shown as paused in debug views, with its record', async () => {
    const world = await claimed();
    const { set, id } = world;
    const sandbox = inspectedSandboxes(world);
    const shown = () => sandbox.inspect(id);
    const kinds = Object.assign({} as InspectedKinds, { sandbox });
    const list = listActors({ ...world, kinds, replica: 'one' });
    expect(shown()).to.not.have.property('paused');

    await set('paused');

    expect(shown()).to.include({ status: 'Running', paused: true });
    expect(shown()?.record).to.have.nested.property('claim.pausedAt');
    expect(shown()?.why.join()).to.include('it is paused');
    const { items } = list(alice, { kind: 'sandbox', limit: 10 });
    expect(items).to.have.lengthOf(1);
    expect(items[0]).to.include({ key: id, paused: true });
  });

  it('has no idle timeout while paused, and the whole timeout after it resumes', async () => {
    const { set, clock, supervisor, id } = await claimed();
    await set('paused');
    clock.advance(IDLE_MS * 10);
    await eventually(() => supervisor.sandbox(id)?.status === 'Running', 'it is there');
    await set('running');
    clock.advance(IDLE_MS - 1);
    expect(supervisor.sandbox(id)?.status).to.equal('Running');
    clock.advance(2);
    await eventually(() => supervisor.sandbox(id)?.status !== 'Running', 'it ends');
  });

  it('resumes for a call if its claim enables that', async () => {
    const { set, exec, record } = await claimed({ autoResume: true });
    await set('paused');

    await Promise.all([exec(), exec(), exec()]);
    expect((await record())?.claim).to.not.have.property('pausedAt');
  });

  it('otherwise refuses such a call with 409 and a hint, and is not ready', async () => {
    const world = await claimed();
    await world.set('paused');

    for (const call of [
      world.exec(),
      endpointOperations(world).openEndpoint(alice, world.id, 'web'),
    ]) {
      const error = await refused(call);
      expect(error.code).to.equal('SANDBOX_NOT_RUNNING');
      expect(error.detail?.['hint']).to.include('"state":"running"');
    }
    expect((await isReady(world)(alice, world.id)).ready).to.equal(false);
    expect((await world.record())?.claim?.pausedAt).to.be.a('number');
  });

  it('is refused if the deployment cannot pause, or the sandbox has ended', async () => {
    const world = await claimed();
    world.driver.description = { ...world.driver.description, pauses: false };
    expect((await refused(world.set('paused'))).code).to.equal('FEATURE_DISABLED');
    expect(await world.set('running'), 'it runs already').to.not.have.property('paused');
    world.driver.description = { ...world.driver.description, pauses: true };
    world.driver.failNext('amend', new NotJoinable('one of its processes does not stop'));
    expect(await rejection(world.set('paused'))).to.be.instanceOf(NotJoinable);
    expect(await world.set('paused')).to.have.property('paused', true);
    world.supervisor.send(world.id, { type: 'END', reason: 'deleted', now: world.clock.now() });
    const { code } = await refused(world.set('paused'));
    expect(['SANDBOX_NOT_RUNNING', 'SANDBOX_NOT_FOUND']).to.include(code);
  });

  it('ends in the state of the last of several crossing changes', async () => {
    const { set, record } = await claimed();
    const states = ['paused', 'running', 'paused', 'paused', 'running', 'paused'] as const;
    await Promise.all(states.map(set));
    const last = (await record())?.claim?.pausedAt;
    await set('running');
    await set('paused');

    expect((await record())?.claim?.pausedAt).to.be.a('number');
    expect(last === undefined || typeof last === 'number').to.equal(true);
  });
});
