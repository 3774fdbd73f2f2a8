import { expect } from 'chai';
import { join } from 'node:path';
import { readPidFile } from '../../src/daemon/process/pid-file.ts';
import { SDKS, type SdkOptions } from '../e2b/a-sdk.ts';
import { programEntries } from '../support/builders/a-root-file-system.ts';
import { gzipLayer, tarOf, writeLayout } from '../support/builders/an-oci-layout.ts';
import { DaemonUnderTest } from '../support/harness/a-daemon.ts';
import { imageFolders, type ImageFolders } from '../support/harness/an-image-driver.ts';
import { stocked } from '../support/harness/on-a-daemon.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('a sandbox with its own image on the built daemon', function () {
  let folders: ImageFolders;
  let daemon: DaemonUnderTest;
  let options: SdkOptions;
  const Sandbox = [...SDKS.values()].at(-1)!; // there are four

  before(async () => {
    folders = imageFolders();
    const layer = await tarOf([...programEntries(), { name: 'hello', content: 'of the image' }]);
    writeLayout(join(folders.sources, 'tools'), { layers: [gzipLayer(layer)], config: {} });
    daemon = await DaemonUnderTest.start([
      ...['--compatible-api-listen', '127.0.0.1:0', '--default-pool-replicas', '2'],
      ...['--compatible-api-images', 'oci:tools,oci:absent'],
      ...['--images-directories', folders.sources, '--images-unpacked-dir', folders.unpacked],
    ]);
    const { code, stdout, stderr } = await daemon.cli(['keys', 'create', '--form', 'e2b']);
    expect(code, stderr).to.equal(0);
    const url = readPidFile(daemon.dataDir)?.compatibleAddress ?? '';
    options = { apiKey: stdout.trim(), apiUrl: url, sandboxUrl: url };
    await stocked(daemon.client(), 2);
  });
  after(async () => {
    await daemon?.dispose();
    folders.remove();
  });

  it("is launched at its creation, and has the image's files", async () => {
    const sandbox = await Sandbox.create('local::default//oci:tools', options);

    expect(await sandbox.files.read('/hello')).to.equal('of the image');
    expect((await sandbox.getInfo()).templateId).to.equal('default');
    expect(await Sandbox.kill(sandbox.sandboxId, options)).to.equal(true);
  });

  it('is refused, with the reason, if it does not start', async () => {
    const absent = await rejection(Sandbox.create('default//oci:absent', options));
    const unlisted = await rejection(Sandbox.create('default//host', options));

    expect(absent.message).to.match(/^400: templateID: no sandbox with its image starts: .*absent/);
    expect(unlisted.message).to.match(
      /^400: templateID: its image is not one of the allowed images/,
    );
  });
});
