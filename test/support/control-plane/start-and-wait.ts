/** Starts a control plane, prints the path of the admin's kubeconfig, and waits to be ended. */
import { ControlPlane } from '../control-plane.ts';

const controlPlane = await ControlPlane.start({ nodes: 1 });
process.stdout.write(`${controlPlane.kubeconfig('admin')}\n`);
const stop = (): void => { void controlPlane.stop().then(() => process.exit()); };
process.once('SIGINT', stop);
process.once('SIGTERM', stop);
setInterval(() => undefined, 60_000);
