import { machineStates } from '../../../src/actors/inspection/machines.ts';
import { type Transition, actorNotFound } from '../../../src/model/inspection.ts';
import { invalidArgument } from '../../../src/model/refusals.ts';
import type {
  ActorFollow,
  ActorName,
  ActorsPage,
  ActorsRequest,
  ActorView,
  DebugOperations,
  DriverReport,
  MachineView,
  QueuesReport,
  ReflectorsReport,
} from '../../../src/services/debug/debug-operations.ts';
import type { Caller } from '../../../src/model/tenant.ts';

export const A_TRANSITION: Transition = {
  number: 1,
  at: 1_000,
  event: 'FOUND',
  cause: 'the driver reported it',
  from: '',
  to: 'idle.available',
  stoodMs: 0,
};

export const anActorView = (part: Partial<ActorView> = {}): ActorView => ({
  kind: 'sandbox',
  key: 'k',
  name: 'sb-k',
  state: 'idle.available',
  since: 1_000,
  status: 'Idle',
  why: ['it is ready'],
  leader: { shard: 3, replica: 'one', epoch: 2 },
  context: { working: 0 },
  deadlines: [{ what: 'the next evaluation', at: 3_000, inMs: 500 }],
  transitions: [A_TRANSITION],
  pending: [{ intent: 'claim', forMs: 5 }],
  record: {
    known: { state: 'idle' },
    stored: { state: 'claimed' },
    differs: [{ field: 'state', actor: 'idle', record: 'claimed' }],
  },
  seenBy: { replica: 'one' },
  ...part,
});

/** Has one sandbox with the key `k`, and records requests. */
export class FakeDebug implements DebugOperations {
  readonly asked: (ActorsRequest | (ActorName & { readonly replica?: string }))[] = [];

  readonly listActors = (_: Caller, request: ActorsRequest): ActorsPage => {
    this.asked.push(request);
    const { kind, key, name, state, since } = anActorView();
    return {
      items: [{ kind, key, name, state, since, status: 'Idle' }],
      next: { kind: 'pool', group: 'g', state: 's', entry: { at: 1, id: 'i' } },
      replica: 'one',
    };
  };

  readonly getActor = async (_: Caller, name: ActorName, replica?: string): Promise<ActorView> => {
    this.asked.push({ ...name, ...(replica === undefined ? {} : { replica }) });
    if (name.kind !== 'sandbox' || name.text !== 'k') throw actorNotFound();
    return anActorView();
  };

  readonly rebuildActor = this.getActor;

  readonly followActor = async (_: Caller, name: ActorName): Promise<ActorFollow> => {
    this.asked.push(name);
    if (name.text !== 'k') throw actorNotFound();
    return {
      news: async function* () {
        yield { kind: 'seen-by', replica: 'two', note: 'no replica leads it now' };
        yield { kind: 'missed' };
        yield { kind: 'transition', transition: A_TRANSITION };
        yield { kind: 'ended' };
      },
      close: () => undefined,
    };
  };

  readonly getQueues = async (replica = 'one'): Promise<QueuesReport> => {
    this.#live(replica);
    const outbox = { queued: 1, running: { claim: { count: 2, oldestMs: 3 } } };
    return {
      replica,
      shards: [{ shard: 3, epoch: 2 }],
      outboxes: { sandboxesAndPools: outbox, members: outbox, groups: outbox },
      deadlines: { count: 1, next: 1_000 },
      claimsWaiting: 4,
      actors: { sandboxes: 1, pools: 1, rebuilt: 0 },
      webhooks: [
        {
          address: 'https://pager.example.com',
          waiting: 2,
          deadLetters: [
            {
              id: 'a.requested',
              event: 'approval.requested',
              approvalId: 'a',
              at: 1_000,
              attempts: 3,
              problem: 'status 500',
            },
          ],
        },
      ],
    };
  };

  readonly getDriver = async (replica = 'one'): Promise<DriverReport> => {
    this.#live(replica);
    return { replica, isolation: 'cgroup-v2', warnings: [], problems: [], work: { instances: 3 } };
  };

  readonly getReflectors = async (replica = 'one'): Promise<ReflectorsReport> => {
    this.#live(replica);
    return {
      replica,
      reflectors: [
        {
          name: 'pods',
          objects: 3,
          revision: '7',
          silentMs: 5,
          lists: 1,
          relists: 0,
          restarts: 0,
          events: 9,
          mishaps: 0,
        },
      ],
    };
  };

  #live(replica: string): void {
    if (replica !== 'one' && replica !== 'two')
      throw invalidArgument('replica', 'is not the name of a live replica', ['one', 'two']);
  }

  readonly getMachine = (kind: MachineView['kind']): MachineView => ({
    kind,
    actors: 1,
    states: machineStates(kind).map((state) => ({ ...state, count: 1 })),
    mermaid: () => 'stateDiagram-v2',
  });
}
