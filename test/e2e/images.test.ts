import {
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { DaemonUnderTest, within } from '../support/harness/a-daemon.ts';
import { programEntries } from '../support/builders/a-root-file-system.ts';
import { imageFolders, type ImageFolders } from '../support/harness/an-image-driver.ts';
import { gzipLayer, tarOf, writeLayout } from '../support/builders/an-oci-layout.ts';
import { line } from '../support/harness/line.ts';

describe('images of a real daemon', function () {
  let folders: ImageFolders;
  let daemon: DaemonUnderTest;
  let key: string;

  before(async () => {
    folders = imageFolders();
    const templates = join(folders.sources, '..', 'templates');
    mkdirSync(templates);
    const template = (name: string, image: string) => ({
      apiVersion: 'sandpool.dev/v1alpha1',
      kind: 'SandboxTemplate',
      metadata: { name },
      spec: { containers: [{ name: 'main', image, env: [{ name: 'FROM', value: 'template' }] }] },
    });
    for (const [name, image] of [
      ['default', 'host'],
      ['tools', 'oci:tools'],
      ['absent', 'dir:absent'],
    ] as const) {
      writeFileSync(join(templates, `${name}.json`), JSON.stringify(template(name, image)));
    }
    const archive = await tarOf([
      ...programEntries(),
      { name: 'hello', content: 'from the image' },
    ]);
    key = writeLayout(join(folders.sources, 'tools'), {
      layers: [gzipLayer(archive)],
      config: { Env: ['FROM=image', 'COLOUR=blue'], Cmd: ['sleep', 'infinity'] },
    }).replace(':', '-');
    daemon = await DaemonUnderTest.start(line`--templates-dir ${templates}
      --images-directories ${folders.sources} --images-unpacked-dir ${folders.unpacked}
      --images-unused-after 60s --default-pool-replicas 0`);
  });
  after(async () => {
    await daemon.dispose();
    folders.remove();
  });

  it('are unpacked at its start for the templates that name them', async () => {
    for (const line of ['an image was unpacked', 'image dir:absent: the image does not exist']) {
      await within(
        `the log says: ${line}`,
        async () => daemon.run.stderr().includes(line) || undefined,
      );
    }
    expect(readdirSync(folders.unpacked)).to.include(key);
  });

  it('serve the sandboxes of a pool, even after a kill of the daemon and a long time without use', async () => {
    expect(
      (
        await daemon
          .client()
          .post('/sandboxpools', { name: 'tools', templateName: 'tools', replicas: 1 })
      ).status,
    ).to.equal(201);
    const id = await within(
      'a claim',
      async () =>
        (await daemon.client().post('/sandboxes', { poolName: 'tools' })).json.sandbox?.[
          'sandboxId'
        ],
    );
    const look = async (): Promise<unknown> =>
      (
        await daemon.client().post(`/sandboxes/${id}/exec`, {
          command: 'cat /hello; echo; echo $FROM $COLOUR; id -un',
        })
      ).json.stdout;
    expect(await look()).to.equal('from the image\ntemplate blue\nsandbox\n');
    await daemon.kill();
    // No template and no layout names it any more, but the sandbox runs from it.
    renameSync(join(folders.sources, 'tools'), join(folders.sources, 'renamed'));
    utimesSync(join(folders.unpacked, key), 1_000, 1_000);
    await daemon.start();
    expect(await look()).to.equal('from the image\ntemplate blue\nsandbox\n');
    expect(readFileSync(join(folders.unpacked, key, 'root/hello'), 'utf8')).to.equal(
      'from the image',
    );
    renameSync(join(folders.sources, 'renamed'), join(folders.sources, 'tools'));
  });

  it('that are missing fail the pool, with the reason in the log', async () => {
    await daemon
      .client()
      .post('/sandboxpools', { name: 'absent', templateName: 'absent', replicas: 1 });
    await within(
      'the pool has failed',
      async () =>
        JSON.stringify((await daemon.client().get('/sandboxpools/absent')).json).includes(
          '"Failed"',
        ) || undefined,
    );
    const why =
      /"name":"absent".*"to":"Failed","startFailure":"image dir:absent: the image does not exist"/;
    await within('the log says why', () => why.test(daemon.run.stderr()) || undefined);
  });
});
