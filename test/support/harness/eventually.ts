export { eventually, NEVER_COMES_MS } from '../../../local-cluster/eventually.ts';
