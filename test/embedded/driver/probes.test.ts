import { expect } from 'chai';
import { RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import type { ReadinessProbe } from '../../../src/model/templates/readiness-probe.ts';
import type { InstanceDefinition } from '../../../src/model/templates/template.ts';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { execProbe, httpProbe, tcpProbe } from '../../support/builders/a-probe.ts';
import { aWatchedDriver, type WatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { eventually, NEVER_COMES_MS } from '../../support/harness/eventually.ts';
import { FactLog } from '../../support/harness/fact-log.ts';
import { aClaim, aDefinition, anOrder, permitted } from '../../support/builders/instance-orders.ts';
import { webServer } from '../../support/builders/web-server.ts';

const often = { periodMs: 1_000, failureThreshold: 1, timeoutMs: NEVER_COMES_MS };

describe('readiness probes of real sandboxes', function () {
  let spawned: WatchedDriver;

  before(async () => {
    buildLauncher();
    spawned = await aWatchedDriver();
  });
  after(() => spawned.close());

  const probed = (
    readinessProbe: ReadinessProbe,
    part: Partial<InstanceDefinition> = {},
    argv = webServer(8_000),
  ) => anOrder(aDefinition({ argv, readinessProbe }, part));
  const lastOf = (id: string) => spawned.log.of(id).at(-1)?.vitals;

  for (const [name, probe] of [
    ['a command', execProbe(['sh', '-c', 'test -e /tmp/ready'])],
    ['a connection', tcpProbe(8_000)],
    ['a request', httpProbe(8_000, '/status/204')],
  ] as const) {
    it(`make an instance available once ${name} passes`, async () => {
      const whenTold = 'until [ -e /tmp/go ]; do sleep 0.05; done; ';
      const argv =
        name === 'a command'
          ? ['sh', '-c', `${whenTold}touch /tmp/ready; exec sleep infinity`]
          : ['sh', '-c', `${whenTold}exec "$@"`, 'sh', ...webServer(8_000)];
      const { id } = await spawned.driver.launch(probed(probe, {}, argv), permitted);
      await eventually(() => spawned.log.of(id).length > 1, 'it is probed');
      await spawned.exec(id, ['touch', '/tmp/go']);
      const available = await spawned.log.when(id, 'available');
      expect(available.record).to.deep.include({ id, state: 'idle' });
      expect(spawned.log.of(id)[1]?.vitals)
        .to.deep.include({ kind: 'starting' })
        .and.to.have.property('reason')
        .that.matches(/^readinessProbe: /);
    });
  }

  it('report exit code with output, status, refusal or silence', async () => {
    const says = async (probe: ReadinessProbe, words: string): Promise<void> => {
      const { id } = await spawned.driver.launch(probed(probe), permitted);
      await eventually(() => JSON.stringify(lastOf(id)).includes(words), words);
    };
    await says(
      execProbe(['sh', '-c', 'echo some words >&2; exit 7']),
      'readinessProbe: sh ended with 7: some words',
    );
    await says(execProbe(['sleep', '5']), 'it took longer than 1 s');
    await says(httpProbe(8_000, '/status/500'), 'GET /status/500 answered 500');
    await says(httpProbe(8_000, '/hang'), 'it took longer than 1 s');
    await says(tcpProbe(8_001), 'port 8001: nothing listens on it');
  });

  it('make a failing instance unavailable, with its current record, and then available again', async () => {
    const idle = await spawned.launched(
      probed(execProbe(['test', '!', '-e', '/tmp/broken'], often)),
    );
    const record = await spawned.driver.claim(idle, aClaim());
    await spawned.exec(record.id, ['touch', '/tmp/broken']);
    const unavailable = await spawned.log.when(record.id, 'unavailable');
    expect(unavailable.record).to.deep.equal(record);
    expect(unavailable.vitals).to.deep.include({
      kind: 'unavailable',
      reason: 'readinessProbe: test ended with 1',
    });
    await spawned.exec(record.id, ['rm', '/tmp/broken']);
    await eventually(() => lastOf(record.id)?.kind === 'available', 'it is available again');
    expect(spawned.log.of(record.id).at(-1)?.record).to.deep.equal(record);
  });

  it('run on request, and share a run', async () => {
    const { timeoutMs } = often;
    const { id } = await spawned.launched(
      probed(execProbe(['true'], { timeoutMs }), {
        endpoints: {
          web: {
            port: 8_000,
            scheme: 'http',
            readinessProbe: httpProbe(8_000, '/', { timeoutMs }),
          },
          raw: { port: 8_001, scheme: 'http' },
        },
      }),
    );
    expect(await spawned.driver.probe(id)).to.deep.equal([{}, { endpoint: 'web' }]);
    const plain = await spawned.launched();
    expect(await spawned.driver.probe(plain.id)).to.deep.equal([]);
  });

  it('send their own headers, and a loopback Host', async () => {
    const { id } = await spawned.driver.launch(probed(httpProbe(8_002, '/path?q')), permitted);
    await eventually(() => JSON.stringify(lastOf(id)).includes('nothing listens'), 'it is probed');
    const once =
      'use IO::Socket::INET; my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1:8002", Listen => 1) or die "$!";' +
      'my $client = $server->accept; sysread $client, my $head, 4096; syswrite $client, "HTTP/1.1 200 OK\\r\\n\\r\\n"; print $head;';
    const { stdout } = await spawned.exec(id, ['perl', '-e', once]);
    expect(String(stdout))
      .to.match(/^GET \/path\?q HTTP\/1\.1\r\n/)
      .and.contain('Host: localhost:8002')
      .and.contain('X-Of-Probe: 1')
      .and.contain('User-Agent: sandpool-probe');
  });

  it('outlive the spawner: ready instances are unavailable until they pass again', async () => {
    const under = await aWatchedDriver();
    try {
      const idle = await under.launched(
        probed(execProbe(['test', '!', '-e', '/tmp/broken'], often)),
      );
      const never = await under.driver.launch(probed(execProbe(['false'])), permitted);
      await eventually(
        () =>
          under.log
            .of(never.id)
            .some(({ vitals }) => vitals.kind === 'starting' && vitals.reason !== undefined),
        'it is probed',
      );
      await under.exec(idle.id, ['touch', '/tmp/broken']);
      await under.log.when(idle.id, 'unavailable');
      await under.driver.stop();
      const log = new FactLog();
      await under.again().watch(log.report);
      expect(log.of(idle.id)[0]).to.deep.include({
        vitals: { ...log.of(idle.id)[0]?.vitals, kind: 'unavailable' },
      });
      expect(log.of(idle.id)[0]?.record).to.deep.include({ state: 'idle' });
      expect(log.kinds(never.id)[0]).to.equal('starting');
    } finally {
      await under.close();
    }
  });

  it('do not prevent the end of an instance', async () => {
    const record = await spawned.launched(probed(execProbe(['sleep', '0.2'], { periodMs: 1_000 })));
    await spawned.driver.retire(record.id, record.revision);
    await spawned.log.when(record.id, 'gone');
    expect(
      await spawned.driver.retire(record.id, record.revision).catch((error: unknown) => error),
    ).to.be.instanceOf(RecordConflict);
    expect(spawned.log.kinds(record.id).at(-1)).to.equal('gone');
  });
});
