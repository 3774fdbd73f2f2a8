import { expect } from 'chai';
import { EventReader } from '../../support/harness/event-reader.ts';
import { eventually } from '../../support/harness/eventually.ts';
import type { HttpAnswer } from '../../support/harness/http-client.ts';
import { aTenantOf, belongingsOf, type Belongings, type Tenant } from './belongings.ts';
import { Clients, type RunningService } from './running-service.ts';

interface Report {
  readonly key: string;
  readonly name: string;
  readonly state: string;
  readonly why: readonly string[];
  readonly leader: { readonly replica?: string; readonly epoch?: number };
  readonly context: Readonly<Record<string, unknown>>;
  readonly transitions: readonly {
    readonly number: number;
    readonly from?: string;
    readonly to: string;
    readonly event: string;
  }[];
  readonly record: {
    readonly known: Readonly<Record<string, unknown>>;
    readonly stored?: Readonly<Record<string, unknown>>;
    readonly differs: readonly object[];
  };
  readonly seenBy: { readonly replica: string; readonly note?: string };
}

interface Page {
  readonly items: readonly {
    readonly kind: string;
    readonly key: string;
    readonly state: string;
  }[];
  readonly next?: string;
}

/** An operator looks into the actors of a running service, whichever replica answers. */
export const lookingInsideSuite = (name: string, service: () => RunningService): void => {
  describe(`the debug view: ${name}`, function () {
    const clients = new Clients(service);
    let owner: Tenant;
    let owned: Belongings;
    const read = <T>({ status, text }: HttpAnswer): T => {
      expect(status, text).to.equal(200);
      return JSON.parse(text) as T;
    };
    /** As its leader sees it: one that is busy is asked again. */
    const look = async (kind: string, key: string): Promise<Report> => {
      let report: Report | undefined;
      await eventually(async () => {
        report = read<Report>(
          await clients.admin.get(`/debug/actors/${kind}/${encodeURIComponent(key)}`),
        );
        return report.seenBy.note === undefined;
      }, `the leader tells of ${kind} ${key}`);
      return report!; // it was read
    };
    const names = (): readonly (readonly [string, string])[] => [
      ['sandbox', owned.running],
      ['sandbox', owned.idle],
      ['pool', `${owned.namespace}/${owned.pool}`],
      ['member', `${owned.namespace}/${owned.env}/${owned.member}`],
      ['group', `${owned.namespace}/${owned.env}/${owned.member}`],
    ];

    before(async () => {
      owner = await aTenantOf(service(), clients, 'inside');
      owned = await belongingsOf(service(), owner);
    });
    after(async () => {
      await owner.ask().delete(`/envs/${owned.env}?force=true`);
      await owner.ask().delete(`/sandboxpools/${owned.pool}?force=true`);
      clients.close();
    });

    it('shows each kind of actor by its usual name, with its history and the reason for its state', async () => {
      for (const [kind, key] of names()) {
        let report = await look(kind, key);
        await eventually(async () => {
          report = await look(kind, key);
          return report.record.stored !== undefined && report.record.differs.length === 0;
        }, `${kind} ${key} says what its record says`);
        expect(report.transitions.at(-1)?.to, key).to.equal(report.state);
        expect(report.why, key).to.not.be.empty;
        expect(report.leader.replica, key).to.be.a('string');
      }
    });

    it('shows a claim step by step', async () => {
      const { state, transitions, context, record } = await look('sandbox', owned.running);

      expect(state).to.equal('running');
      expect(transitions.map(({ to }) => to)).to.include('running');
      expect(context).to.include({ working: 0 });
      expect(record.known['claim'])
        .to.have.property('owner')
        .that.includes({ team: owner.team, user: owner.user });
    });

    it('lists actors by kind, state and pool, page by page', async () => {
      const all: string[] = [];
      let cursor = '';
      do {
        const page = read<Page>(
          await clients.admin.get(
            `/debug/actors?pool=${owned.namespace}/${owned.pool}&kind=sandbox&limit=1${cursor}`,
          ),
        );
        all.push(...page.items.map(({ key }) => key));
        cursor = page.next === undefined ? '' : `&cursor=${page.next}`;
      } while (cursor !== '');
      expect(all).to.include.members([owned.running, owned.idle]);
      const running = read<Page>(
        await clients.admin.get(
          `/debug/actors?pool=${owned.namespace}/${owned.pool}&state=running`,
        ),
      );
      expect(running.items.map(({ key }) => key)).to.deep.equal([owned.running]);
      expect((await clients.admin.get('/debug/actors?pool=no-such-pool')).json.errorCode).to.equal(
        'POOL_NOT_FOUND',
      );
    });

    it('counts actors by state', async () => {
      for (const kind of ['sandbox', 'pool', 'member', 'group']) {
        const { actors, states } = read<{
          readonly actors: number;
          readonly states: readonly { readonly path: string; readonly count: number }[];
        }>(await clients.admin.get(`/debug/machines/${kind}`));
        expect(actors, kind).to.be.at.least(1);
        expect(states.find(({ path }) => path === '')?.count, kind).to.equal(actors);
        expect((await clients.admin.get(`/debug/machines/${kind}?format=mermaid`)).text).to.match(
          /^stateDiagram-v2\n/,
        );
      }
    });

    it('streams the transitions of an actor, and its end', async () => {
      const {
        ports: [port = 0],
        adminKey,
      } = service();
      const reader = (
        await EventReader.open(port, `/debug/actors/sandbox/${owned.idle}/inspect`, {
          'SERVICE-API-KEY': adminKey,
        })
      ).read();
      await eventually(
        () =>
          reader.events.some(
            ({ event, data }) => event === 'seen-by' && data['note'] === undefined,
          ),
        'its leader tells',
      );
      await owner.ask().delete(`/sandboxes/${owned.idle}`);

      await eventually(
        () => reader.events.some(({ data }) => String(data['to']).startsWith('stopping')),
        'that it stops is told',
      );
      await eventually(() => reader.events.at(-1)?.event === 'end', 'its end is told');
      reader.close();
    });

    it('rebuilds an actor from its facts, in the same state', async () => {
      for (const [kind, key] of names().filter(([, each]) => each !== owned.idle)) {
        const before = await look(kind, key);
        let rebuilt: HttpAnswer | undefined;
        await eventually(
          async () =>
            (rebuilt = await clients.admin.post(
              `/debug/actors/${kind}/${encodeURIComponent(key)}/rebuild`,
            )).status === 200,
          `${kind} is rebuilt`,
        );
        if (rebuilt)
          expect(read<Report>(rebuilt)).to.include({ key: before.key, name: before.name });
        await eventually(
          async () => (await look(kind, key)).state === before.state,
          `${kind} ${key} stands where it stood`,
        );
      }
      expect((await owner.ask().get(`/sandboxes/${owned.running}`)).json.sandbox?.status).to.equal(
        'Running',
      );
    });

    it('answers 404 for an unknown actor', async () => {
      for (const path of [
        '/debug/actors/sandbox/none',
        '/debug/actors/pool/none',
        '/debug/actors/member/none%2Fnone',
        '/debug/actors/group/none',
        '/debug/machines/none',
      ]) {
        expect((await clients.admin.get(path)).json.errorCode, path).to.equal('NOT_FOUND');
      }
    });
  });
};
