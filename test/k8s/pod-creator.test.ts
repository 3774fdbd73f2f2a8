import { expect } from 'chai';
import { v7 } from 'uuid';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { ApiRefused, ApiUnreachable, NotSent } from '../../src/k8s/api/api-errors.ts';
import { PodCreator, type PodCreatorDeps } from '../../src/k8s/sandboxes/pods/pod-creator.ts';
import { InstanceMirror } from '../../src/k8s/sandboxes/instance-mirror.ts';
import type { Tenant } from '../../src/model/tenant.ts';
import { aDefinition, ALICE, anOrder } from '../support/builders/instance-orders.ts';
import { rejection } from '../support/harness/rejection.ts';
import { testAgents } from '../support/builders/test-agents.ts';

type Create = PodCreatorDeps['api']['create'];

/** Makes Pods by what `create` answers; reads nothing. */
const aCreator = (create: Create, part: Partial<PodCreatorDeps> = {}): PodCreator =>
  new PodCreator({
    api: { create, get: () => Promise.reject(new Error('nothing is read')) },
    untilIdleEnough: async () => undefined,
    mirror: new InstanceMirror({
      report: () => undefined,
      missesPod: () => undefined,
      nodeTrouble: () => undefined,
    }),
    pods: { agents: testAgents, runAsUser: 65_532, terminationGraceSeconds: 0 },
    agentMaps: { provide: async () => undefined },
    ...part,
  });

/** As the API server answers that it has made an object. */
const made = (body: object, revision = '1'): object => ({
  ...body,
  metadata: {
    ...(body as { readonly metadata: object }).metadata,
    uid: `uid-${revision}`,
    resourceVersion: revision,
  },
});

const launch = (creator: PodCreator, poolOwner: Tenant = ALICE, poolUid?: string) => {
  const order = anOrder(aDefinition({ image: 'busybox' }), v7());
  const record = { ...order.record, poolOwner, ...(poolUid === undefined ? {} : { poolUid }) };
  return creator.create({ ...order, record }, () => undefined);
};

const BOB: Tenant = { namespace: 'beta', team: 'beta', user: 'bob' };

describe('the creation of Pods', () => {
  it('waits for the agent of their namespace', async () => {
    const asked: string[] = [];
    const create: Create = async (path, body) => {
      asked.push(path.slice(path.lastIndexOf('/')));
      return made(body);
    };
    const provide = async (namespace: string, { id }: { readonly id: string }): Promise<void> => {
      expect([namespace, id]).to.deep.equal(['alpha', testAgents.programs.get('amd64')?.id]);
      asked.push('agent');
    };
    await launch(aCreator(create, { agentMaps: { provide } }));
    expect(asked).to.deep.equal(['/sandboxes', 'agent', '/pods']);
  });

  for (const failure of [new NotSent('no free connection'), new ApiUnreachable('cut')]) {
    it(`is retried, without a failed start, if the API server is unreachable: ${failure.name}`, async () => {
      const api = {
        create: () => Promise.reject(failure),
        get: () => Promise.reject(failure),
      };
      const creator = aCreator(api.create, { api });

      expect(await rejection(creator.create(anOrder(), () => undefined))).to.be.instanceOf(
        OutcomeUnknown,
      );
    });
  }

  const FORBIDDEN = new ApiRefused({
    status: 403,
    reason: 'Forbidden',
    causes: [],
    retryAfterSeconds: undefined,
    missing: undefined,
    message:
      'pods is forbidden: User "sandpool" cannot create resource "pods" in API group "" in the namespace "alpha"',
  });
  const refusedPods = (review: () => Promise<unknown>) => {
    const asked: unknown[] = [];
    const create: Create = async (path, body) => {
      if (path.endsWith('/pods')) throw FORBIDDEN;
      if (path.endsWith('/sandboxes')) return made(body);
      asked.push(body);
      return review();
    };
    const creator = aCreator(create, { api: { create, get: () => Promise.reject(FORBIDDEN) } });
    return { creator, asked };
  };
  for (const [name, review] of Object.entries({
    'has read no rights yet, just after its start': () => Promise.reject(FORBIDDEN),
    'has read them meanwhile': () => Promise.resolve({ status: { allowed: true } }),
  })) {
    it(`is retried, without a failed start, after a refusal of an API server that ${name}`, async () => {
      expect(
        await rejection(refusedPods(review).creator.create(anOrder(), () => undefined)),
      ).to.be.instanceOf(OutcomeUnknown);
    });
  }

  it('fails as a start if the right to create Pods is missing', async () => {
    const { creator, asked } = refusedPods(() => Promise.resolve({ status: { allowed: false } }));

    const error = await rejection(creator.create(anOrder(), () => undefined));

    expect(error).not.to.be.instanceOf(OutcomeUnknown);
    expect(String(error)).to.include('cannot create resource "pods"');
    expect(asked).to.have.lengthOf(1);
    expect(asked)
      .to.have.nested.property('[0].spec.resourceAttributes')
      .that.includes({ verb: 'create', resource: 'pods', group: '' });
  });

  it('leaves few records without Pods at any time, however many are requested at once', async () => {
    const left = { records: 0, pods: 0, most: 0, revision: 0 };
    const waiting: (() => void)[] = [];
    const creator = aCreator(async (path, body) => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
      if (path.endsWith('/sandboxes')) left.records += 1;
      else left.pods += 1;
      left.most = Math.max(left.most, left.records - left.pods);
      left.revision += 1;
      return made(body, String(left.revision));
    });

    const born = Promise.all(Array.from({ length: 128 }, () => launch(creator)));
    // The API server answers in the order in which it was asked, sixteen at a time, as over so many
    // connections.
    for (let turn = 0; left.pods < 128 && turn < 1_000; turn++) {
      for (const answer of waiting.splice(0, 16)) answer();
      await new Promise<void>((resolve) => {
        setImmediate(resolve);
      });
    }
    await born;

    expect(left.records).to.equal(128);
    expect(left.most).to.be.at.most(16);
  });

  it('queues 1,024 per tenant, retries the others, and does not delay other tenants', async () => {
    const asked: string[] = [];
    let end = (): void => undefined;
    const over = new Promise<never>((_, reject) => {
      end = () => reject(new NotSent('it is over'));
    });
    const creator = aCreator((path) => {
      asked.push(path);
      return over;
    });
    const createFor = (owner: Tenant): Promise<Error> => rejection(launch(creator, owner));
    const all = Array.from({ length: 14 + 1_024 }, () => createFor(ALICE));
    await turn();

    const refused = await createFor(ALICE);
    expect(refused).to.be.instanceOf(OutcomeUnknown);
    expect(refused.message).to.include('too many instances are waiting to be created');
    const others = createFor(BOB);
    await turn();
    expect(asked.filter((path) => path.includes('/beta/'))).to.have.length(1);
    end();
    await Promise.all([...all, others]);
    expect(asked).to.have.length(14 + 1_024 + 1);
  });

  it('for 20 pools of one tenant does not delay other tenants', async () => {
    const asked: string[] = [];
    const waiting: (() => void)[] = [];
    const creator = aCreator(async (path, body) => {
      await new Promise<void>((resolve) => {
        if (path.endsWith('/sandboxes')) asked.push(path.includes('/beta/') ? 'bob' : 'alice');
        waiting.push(resolve);
      });
      return made(body);
    });

    const all = Array.from({ length: 20 * 32 }, (_, n) =>
      launch(creator, ALICE, `alice-${n % 20}`),
    );
    await turn();
    for (let n = 0; n < 8; n++) all.push(launch(creator, BOB, 'bob-1'));
    await turn();
    // Two connections are Bob's at once, though none of Alice's is answered.
    expect(asked).to.deep.equal([...Array.from({ length: 14 }, () => 'alice'), 'bob', 'bob']);

    for (let turns = 0; waiting.length > 0 && turns < 10_000; turns++) {
      waiting.shift()?.();
      await turn();
    }
    await Promise.all(all);
    const last = asked.lastIndexOf('bob');
    expect(
      asked.slice(0, last).filter((one) => one === 'alice').length,
      "of Alice's before Bob's last",
    ).to.be.at.most(14 + 8);
  });

  it('follows each record at once, even if claims have queued up in the meantime', async () => {
    const asked: string[] = [];
    let calls = 0;
    const creator = aCreator(
      async (path, body) => {
        asked.push(path.slice(path.lastIndexOf('/') + 1));
        return made(body);
      },
      {
        untilIdleEnough: () =>
          calls++ === 0 ? Promise.resolve() : Promise.reject(new Error('it waits for claims')),
      },
    );

    await launch(creator);

    expect(asked).to.deep.equal(['sandboxes', 'pods']);
  });
});

const turn = (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });
