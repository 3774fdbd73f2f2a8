import { expect } from 'chai';
import { NotJoinable } from '../../src/contracts/sandbox-driver.ts';
import { isNodeSilent, NodeSilent } from '../../src/k8s/sandboxes/pods/pod-presence.ts';
import { SILENT_MS, SilentNodes } from '../../src/k8s/sandboxes/silent-nodes.ts';
import { eventually } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { aDriver, anInstance } from './a-driver.ts';
import { MemoryApi } from './a-memory-api.ts';

const REQUEST = { argv: ['true'], timeoutMs: 1_000, outputLimit: 10 };
const NEVER = new AbortController().signal;

describe('a silent node', () => {
  let failure: Error | undefined;
  let world: Awaited<ReturnType<typeof aDriver>>;
  let api: MemoryApi;

  beforeEach(async () => {
    api = new MemoryApi();
    world = await aDriver(api, {
      exec: async () => {
        if (failure) throw failure;
        return {};
      },
    });
    failure = new NodeSilent({});
  });
  afterEach(() => world.driver.stop());

  const kindOf = (id: string): string | undefined => world.last(id)?.vitals.kind;
  const instance = async (claimed: boolean) => {
    const made = await anInstance(api, world.driver, { claimed });
    await eventually(() => kindOf(made.id) === 'available', 'it is ready');
    return made;
  };
  const exec = (id: string): Promise<unknown> => world.driver.exec(id, REQUEST, NEVER);

  it('hands out nothing for some seconds, and keeps its running sandboxes', async () => {
    const [idle, claimed] = [await instance(false), await instance(true)];
    const poolUid = world.last(idle.id)?.record?.poolUid ?? '';
    expect(await rejection(exec(claimed.id))).to.be.instanceOf(NotJoinable);
    expect(world.last(idle.id)?.vitals).to.include({
      kind: 'unavailable',
      reason: 'its node does not answer',
    });
    expect(kindOf(claimed.id)).to.equal('available');
    const looking = world.driver.idle(poolUid, idle.namespace, 1);
    expect(await looking).to.deep.equal([]);

    world.clock.advance(SILENT_MS);

    expect(kindOf(idle.id)).to.equal('available');
  });

  it('is trusted again with the first answer', async () => {
    const [idle, claimed] = [await instance(false), await instance(true)];
    await rejection(exec(claimed.id));
    failure = undefined;
    await exec(claimed.id);
    expect(kindOf(idle.id)).to.equal('available');
  });

  it('is not suspected for faults that a sandbox can cause', async () => {
    const [idle, claimed] = [await instance(false), await instance(true)];
    failure = new NotJoinable('nothing could be run in the sandbox: connection refused');
    await rejection(exec(claimed.id));
    expect(kindOf(idle.id)).to.equal('available');
    expect(
      isNodeSilent(
        'Internal error occurred: error sending request: Post "https://n1:10250/exec/…": dial tcp: connection refused',
      ),
    ).to.equal(true);
    expect(isNodeSilent('error dialing backend: dial tcp: i/o timeout')).to.equal(true);
    expect(isNodeSilent('exec: "error dialing backend: ": executable file not found')).to.equal(
      false,
    );
  });

  it('is suspected again by each failure, within a bounded memory', () => {
    const clock = new TestClock();
    const changes: string[] = [];
    const nodes = new SilentNodes({
      clock,
      log: quietLog,
      changed: (name) => {
        changes.push(name);
      },
    });
    nodes.noAnswer('n1');
    clock.advance(SILENT_MS - 1);
    nodes.noAnswer('n1');
    clock.advance(SILENT_MS - 1);
    expect(nodes.trouble('n1')).to.equal('its node does not answer');
    clock.advance(1);
    expect(nodes.trouble('n1')).to.equal(undefined);
    expect(changes).to.deep.equal(['n1', 'n1']);

    for (let n = 0; n < 1_001; n++) nodes.noAnswer(`many-${n}`);
    expect([nodes.trouble('many-999'), nodes.trouble('many-1000')]).to.deep.equal([
      'its node does not answer',
      undefined,
    ]);
    nodes.stop();
  });
});
