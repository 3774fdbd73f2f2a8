import { expect } from 'chai';
import { ApiRefused } from '../../src/k8s/api/api-errors.ts';
import { AgentMaps } from '../../src/k8s/sandboxes/pods/agent-maps.ts';
import { agentProgram } from '../../src/k8s/sandboxes/pods/agent-programs.ts';
import { eventually } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

const HOUR_MS = 3_600_000;
const refusal = (status: number, reason = 'Refused'): ApiRefused =>
  new ApiRefused({
    status,
    reason,
    causes: [],
    retryAfterSeconds: undefined,
    missing: undefined,
    message: 'no',
  });

describe('the ConfigMap of the agent in a namespace', () => {
  const program = agentProgram(Buffer.from('new'));
  const agents = { own: 'amd64', programs: new Map([['amd64', program]]) };
  /** What was asked of the API server; `there`: it has the ConfigMap. */
  const aServer = ({ there = false, refused = 0, pods = [] as readonly string[] } = {}) => {
    const asked: string[] = [];
    const clock = new TestClock();
    const server = {
      asked,
      clock,
      there,
      refused,
      more: undefined as string | undefined,
      found: { metadata: { uid: 'own' }, immutable: true, binaryData: { launcher: 'bmV3' } },
    };
    const api = {
      create: async (path: string, body: object, options?: { readonly query?: object }) => {
        const isTry = options?.query !== undefined;
        asked.push(`${isTry ? 'try' : 'make'} ${path}`);
        if (server.refused !== 0) throw refusal(server.refused, 'Conflict');
        if (server.there) throw refusal(409, 'AlreadyExists');
        if (isTry) expect(body).to.deep.include({ binaryData: {} });
        else expect(body).to.deep.include({ binaryData: { launcher: 'bmV3' }, immutable: true });
        server.there = !isTry;
        return body;
      },
      list: async (path: string, query: object, options?: object) => {
        asked.push(`list ${path}`);
        expect(query).to.have.property('labelSelector').that.includes(`notin (${program.id})`);
        expect(options).to.deep.equal({ metadataOnly: true });
        const items = pods.map((id) => ({ metadata: { labels: { 'sandpool.dev/agent': id } } }));
        return { metadata: { continue: server.more }, items };
      },
      remove: async (
        _path: string,
        { dryRun = false, uid }: { readonly dryRun?: boolean; readonly uid?: string },
        options?: { readonly query?: object },
      ) => {
        const words = [dryRun ? 'look' : 'remove', uid, JSON.stringify(options?.query)];
        asked.push(words.filter((word) => word !== undefined).join(' '));
        if (uid !== undefined) server.there = false;
        return { items: server.there ? [server.found] : null };
      },
    };
    const maps = new AgentMaps({ api: api as never, agents, clock, log: quietLog });
    return { ...server, server, provide: (of = 'a') => maps.provide(of, program) };
  };
  const MAPS = '/api/v1/namespaces/a/configmaps';

  it('is created if missing, once for simultaneous requests', async () => {
    const { asked, provide } = aServer();
    await Promise.all([provide(), provide()]);
    await provide();
    expect(asked).to.deep.equal([`try ${MAPS}`, `make ${MAPS}`]);
    await provide('b');
    expect(asked.slice(2)).to.deep.equal([
      'try /api/v1/namespaces/b/configmaps', // this server has it in every namespace
      `look {"fieldSelector":"metadata.name=sandpool-agent-${program.id}"}`,
    ]);
  });

  it('replaces what somebody else created under its name', async () => {
    for (const forged of [{ binaryData: { launcher: 'b2xk' } }, { immutable: false }]) {
      const { asked, provide, server } = aServer({ there: true });
      server.found = { ...server.found, metadata: { uid: 'forged' }, ...forged };
      await provide();
      const query = `{"fieldSelector":"metadata.name=sandpool-agent-${program.id}"}`;
      expect(asked).to.deep.equal([
        `try ${MAPS}`,
        `look ${query}`,
        `remove forged ${query}`,
        `make ${MAPS}`,
      ]);
    }
  });

  it('is created again within a minute after a deletion', async () => {
    const { asked, provide, server, clock } = aServer();
    await provide();
    server.there = false;
    await provide();
    expect(asked).to.have.length(2);
    clock.advance(60_000);
    await provide();
    expect(asked.slice(2)).to.deep.equal([`try ${MAPS}`, `make ${MAPS}`]);
  });

  it('is requested again after a refusal', async () => {
    const { provide, server } = aServer({ refused: 403 });
    expect(await rejection(provide())).to.include({ status: 403 });
    server.refused = 0;
    await provide();
    expect(server.there).to.equal(true);
  });

  it('is not taken for created if another write got in the way', async () => {
    const { provide, server } = aServer({ refused: 409 }); // as of a quota that others change, too
    expect(await rejection(provide())).to.include({ name: 'OutcomeUnknown' });
    server.refused = 0;
    await provide();
    expect(server.there).to.equal(true);
  });

  it('replaces older ones that no Pod uses, an hour after the start', async () => {
    const { asked, provide, clock, server } = aServer({
      there: true,
      pods: ['old', 'old', 'older'],
    });
    await provide();
    clock.advance(HOUR_MS - 1);
    await provide();
    expect(asked.join()).to.not.include('list');
    clock.advance(60_000);
    await provide();
    await eventually(() => asked.length === 6, 'it has tidied up');
    expect(asked.slice(4)).to.deep.equal([
      'list /api/v1/namespaces/a/pods',
      `remove {"labelSelector":"sandpool.dev/agent,sandpool.dev/agent notin (${program.id},old,older)"}`,
    ]);

    server.more = 'and so on';
    clock.advance(HOUR_MS);
    await provide();
    await eventually(() => asked.length === 8, 'it has looked');
    expect(asked.at(-1)).to.equal('list /api/v1/namespaces/a/pods');
  });
});
